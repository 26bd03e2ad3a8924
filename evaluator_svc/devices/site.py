"""One device of an evaluator: its lock, its judge, its spare processes, its caches.

The order in which a candidate is judged is in `pipeline`.
"""

import dataclasses
import importlib.metadata
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache, partial
from pathlib import Path
from typing import Final

from evaluator_svc.baseline_names import COMPILED
from evaluator_svc.cache.code_digest import code_digest
from evaluator_svc.cache.disk_cache import DiskCache
from evaluator_svc.cache.object_cache import ObjectCache
from evaluator_svc.devices.baseline_watch import BaselineWatch
from evaluator_svc.hardware import perf_events
from evaluator_svc.hardware.device_lock import DeviceLock
from evaluator_svc.hardware.host_load import HostLoad, LoadMeter
from evaluator_svc.hardware.host_lock import HostLock
from evaluator_svc.hardware.memory_account import MemoryAccount
from evaluator_svc.languages import backend_of
from evaluator_svc.messages.locked import Ready
from evaluator_svc.processes.build_pools import BuildPools
from evaluator_svc.processes.forking import FOREIGN, RUNNER
from evaluator_svc.processes.judge_client import JudgeClient
from evaluator_svc.processes.judge_starter import JudgeStarter
from evaluator_svc.processes.locked_starter import LockedStarter
from evaluator_svc.processes.process import ChildProcess
from evaluator_svc.processes.spare_pool import SparePool
from evaluator_svc.settings import EvaluatorSettings
from evaluator_svc.signing import Signer
from evaluator_svc.sizes.memory_needs import USABLE_SHARE
from evaluator_svc.tools import profiler
from kernel_foundry.domain.admission import Admission
from kernel_foundry.domain.device import Availability, DeviceSpec, IsolationReport, Peaks
from kernel_foundry.domain.digest import content_digest
from kernel_foundry.domain.plain import PlainError, from_json, to_json
from kernel_foundry.domain.task import Task
from kernel_foundry.errors import BackendUnavailableError

PROFILERS: Final = {"cuda": profiler.NCU, "sycl": perf_events.NAME}
"""The tool whose counters a profile reads, by kind of device."""

_PACKAGE: Final = Path(__file__).parents[1]

_MEMORY_A_SPARE: Final = 16 << 30
"""Device memory for each spare runner, which occupies some itself."""


class DeviceSite:
    """One device of an evaluator.

    Args:
        ready: Result of the device's probe.
        compiler_version: As its builders report it.
        settings: The evaluator's settings.
        starter: Starts runners.
        judges: Starts the judge.
        signer: Holds the key of the caches.
        pools: Ready builders and inspectors of all devices.
    """

    def __init__(
        self,
        ready: Ready,
        *,
        compiler_version: str,
        settings: EvaluatorSettings,
        starter: LockedStarter,
        judges: JudgeStarter,
        signer: Signer,
        pools: BuildPools,
    ) -> None:
        if ready.device is None:
            raise BackendUnavailableError(ready.unavailable)
        self.spec: DeviceSpec = _limited(ready.device, settings)
        self.compiler_version = compiler_version
        self.isolation: IsolationReport = ready.isolation
        self.settings = settings
        self.kind, _, number = self.spec.id.partition(":")
        self._index = int(number)
        self._node = ready.node
        locked_file = settings.cache_dir / "devices" / self.spec.id.replace(":", "-")
        self.lock = DeviceLock(None if self.shares_cores else HostLock(locked_file))
        self.memory = MemoryAccount(int(USABLE_SHARE * self.spec.memory_bytes))
        """Leased before the lock is taken: nobody waits for memory while holding it."""
        self.pending = 0
        """Calls that use the device or wait for it; kept by `DeviceSites`."""
        self.pending_of: Counter[str] = Counter()
        """The same by user."""
        self.threads = ThreadPoolExecutor(
            max_workers=settings.parallel_evaluations,
            thread_name_prefix=f"evaluation-{self.spec.id}",
        )
        self.objects = ObjectCache(settings.cache_dir / "objects", signer.cache_key)
        self._facts = DiskCache(settings.cache_dir / "facts", signer.cache_key)
        self._starter = starter
        self._judges = judges
        self._judge: JudgeClient | None = None
        self._judge_lock = threading.Lock()
        self.peaks_lock = threading.Lock()
        """Held while the device's limits are looked up or measured."""
        self.closed_counters = _closed_counters(self.kind)
        """Why no profile can read counters here; empty if it may. A profile that fails sets it."""
        self._admissions: dict[str, Admission] = {}
        self._untrue_baselines: set[str] = set()
        """Keys of admissions of an earlier process that timed baselines at a loaded moment."""
        self.baselines = BaselineWatch()
        self.helpers = ThreadPoolExecutor(thread_name_prefix="judge-call")
        if self.shares_cores:
            self.builders = pools.builders_of_device(self.kind, self._index, self.lock)
            self.inspectors = pools.inspectors_of_device(self.kind, self._index, self.lock)
        else:
            self.builders = pools.builders_of_architecture(self.kind, self.spec.architecture)
            self.inspectors = pools.inspectors_of_kind(self.kind)
        spares = settings.spare_processes
        if not self.shares_cores:
            spares = min(settings.spare_processes_of_gpu, self.spec.memory_bytes // _MEMORY_A_SPARE)
        self.runners = self._runners(with_library=False, size=spares)
        # Torch in it makes a spare large, and few candidates call libraries.
        self.library_runners = self._runners(with_library=True, size=0)

    @property
    def shares_cores(self) -> bool:
        """True when kernels run on the host's cores, where builds would disturb timings."""
        return _runs_on_host_cores(self.spec)

    @property
    def judge(self) -> JudgeClient:
        """The device's judge, started on first use and again only if it is lost."""
        with self._judge_lock:
            if self._judge is None or not self._judge.is_running:
                self._judge = self._judges.start(self.spec)
            return self._judge

    @property
    def profiler(self) -> Availability:
        """The tool whose counters profiles read here, or why there is none."""
        reason = self.closed_counters
        return Availability(
            kind=f"{self.spec.id} {PROFILERS.get(self.kind, 'none')}",
            available=not reason,
            reason=reason,
        )

    def warm_up(self) -> None:
        """Start the judge and the spare processes, in the background."""
        self.helpers.submit(self.judge.facts)
        self.refill()

    def warm_up_library(self) -> None:
        """Let torch be imported for plans with library calls, in the background."""
        # A failure is met again, and raised, by the first such plan.
        self.helpers.submit(self._starter.warm_up_library)

    def refill(self) -> None:
        """Replace used builders, inspectors and runners, in the background."""
        self.builders.refill()
        self.inspectors.refill()
        self.runners.refill()

    def building(self) -> AbstractContextManager[None]:
        """Return what to hold during a build: the shared lock if builds use the device's cores."""
        return self.lock.shared() if self.shares_cores else nullcontext()

    def remembered_peaks(self) -> Peaks | None:
        """Return the device's measured limits, or None when they are yet to be measured."""
        entry = self._facts.get(self._peaks_key())
        try:
            return None if entry is None else from_json(Peaks, entry)
        except PlainError:
            return None

    def remember_peaks(self, peaks: Peaks) -> None:
        """Keep the device's measured limits, here and on disk."""
        self._facts.put(self._peaks_key(), to_json(peaks).encode())
        self.spec = dataclasses.replace(self.spec, peaks=peaks)

    def remembered_admission(self, task: Task) -> Admission | None:
        """Return the admission of `task` that is kept, or None."""
        key = self._admission_key(task)
        if key not in self._admissions:
            quiet, loaded = self._facts.get(key), None
            if quiet is None:
                loaded = self._facts.get(_of_loaded_moment(key))
            entry = quiet or loaded
            if entry is None:
                return None
            try:
                self._admissions[key] = from_json(Admission, entry)
            except PlainError:
                return None
            if loaded is not None:
                self._untrue_baselines.add(key)
        return self._admissions[key]

    def has_true_baselines(self, task: Task) -> bool:
        """Return False when the kept admission of `task` has baselines of a loaded moment.

        They are those of an earlier process, and are measured again before they are relied on.
        """
        return self._admission_key(task) not in self._untrue_baselines

    def remember_admission(
        self,
        task: Task,
        admission: Admission,
        load: HostLoad | None = None,
        drifts: tuple[str, ...] = (),
    ) -> None:
        """Keep an admission whose baselines were just timed, here and on disk.

        Another process measures those of a loaded host again. It makes the whole admission again
        where the task was refused or torch.compile left out: the host may have had no time.
        """
        key = self._admission_key(task)
        self._admissions[key] = admission
        self._untrue_baselines.discard(key)
        if self.saw_baselines(task, load, drifts):
            self._facts.put(key, to_json(admission).encode())
        elif admission.admitted and _has_compiled(admission, self.settings.baselines):
            self._facts.put(_of_loaded_moment(key), to_json(admission).encode())

    def saw_baselines(
        self, task: Task, load: HostLoad | None, drifts: tuple[str, ...] = ()
    ) -> bool:
        """Note that the task's baselines were timed; return False when the host was loaded.

        Args:
            task: The task.
            load: What ran beside; None: nobody knows.
            drifts: Changes since the last time, as warnings.
        """
        is_loaded = load is not None and load.is_loaded
        warnings = drifts
        if load is not None and is_loaded:
            said = f"{load.text} while baselines were timed: they are of a loaded moment"
            warnings = (*drifts, said)
        self.baselines.saw(task.digest, is_loaded=is_loaded, warnings=warnings)
        return not is_loaded

    def keeps_admission(self, task: Task) -> bool:
        """Return whether another process finds the admission of `task` on disk."""
        key = self._admission_key(task)
        return any(self._facts.get(k) is not None for k in (key, _of_loaded_moment(key)))

    def load_meter(self) -> LoadMeter:
        """Return a meter of the host's load, which starts now."""
        # A GPU's times need a core that launches, the host's own as many as kernels have threads.
        return LoadMeter(self.settings.thread_count if self.shares_cores else 1)

    def close(self) -> None:
        """Wait for running evaluations, then end every process of the device."""
        self.threads.shutdown()
        self.runners.close()
        self.library_runners.close()
        # Calls to the judge first: one that finds it gone would start another.
        self.helpers.shutdown()
        with self._judge_lock:
            if self._judge is not None:
                self._judge.close()

    @contextmanager
    def one_thread_runner(self, *, with_library: bool) -> Iterator[ChildProcess]:
        """Start a runner whose CPU device runs one work-group at a time; end it afterwards."""
        process = self._start_runner(with_library=with_library, threads=1)
        try:
            yield process
        finally:
            process.kill()

    @contextmanager
    def foreign_process(self) -> Iterator[ChildProcess]:
        """Start a process for a foreign kernel; end it, and all that it started, afterwards.

        Raises:
            IsolationUnavailableError, ProcessLostError: as `LockedStarter.start`.
            BackendUnavailableError: torch has no such device.
        """
        process, ready = self._starter.start(
            FOREIGN, kind=self.kind, index=self._index, node=self._node, with_library=True
        )
        try:
            if ready.unavailable:
                raise BackendUnavailableError(ready.unavailable, device=self.spec.id)
            yield process
        finally:
            process.kill()

    def _runners(self, *, with_library: bool, size: int) -> SparePool:
        start = partial(self._start_runner, with_library=with_library)
        return SparePool(start, device_lock=self.lock, size=size)

    def _start_runner(self, *, with_library: bool, threads: int = 0) -> ChildProcess:
        process, ready = self._starter.start(
            RUNNER,
            kind=self.kind,
            index=self._index,
            node=self._node,
            with_library=with_library,
            threads=threads,
        )
        if ready.device is None:
            process.kill()
            raise BackendUnavailableError(ready.unavailable, device=self.spec.id)
        return process

    def _peaks_key(self) -> str:
        return content_digest("peaks 3", *self._identity())

    def _admission_key(self, task: Task) -> str:
        return content_digest(
            "admission",
            _code_of_admissions(),
            task.digest,
            *self._identity(),
            _torch_version(),
            repr(self.spec.peaks),
            *self.settings.baselines,
        )

    def _identity(self) -> tuple[str, ...]:
        """Data that equal devices of one host share, so that they are measured once."""
        spec = self.spec
        threads = str(self.settings.thread_count)
        sizes = (str(spec.memory_bytes), str(spec.cache_bytes))
        return (self.kind, spec.name, spec.architecture, spec.driver_version, threads, *sizes)


def _has_compiled(admission: Admission, asked: tuple[str, ...]) -> bool:
    wanted = {name for name in asked if name in COMPILED}
    timed = ({b.name for b in w.baselines} for w in admission.workloads if w.baselines)
    return all(wanted <= names for names in timed)


def _of_loaded_moment(admission_key: str) -> str:
    return content_digest("of a loaded moment", admission_key)


def _limited(spec: DeviceSpec, settings: EvaluatorSettings) -> DeviceSpec:
    """Return the device with the memory and cache sizes that the settings allow."""
    memory_bytes = settings.device_memory_bytes or spec.memory_bytes
    host_cache_bytes = settings.host_cache_bytes if _runs_on_host_cores(spec) else 0
    return dataclasses.replace(
        spec,
        memory_bytes=min(spec.memory_bytes, memory_bytes),
        cache_bytes=host_cache_bytes or spec.cache_bytes,
    )


def _runs_on_host_cores(spec: DeviceSpec) -> bool:
    return backend_of(spec.language).runs_on_host_cores


@cache
def _code_of_admissions() -> str:
    """Other code may find other things about the same task: it does not take them up."""
    return code_digest(*(_PACKAGE / name for name in ("judge", "sizes")))


def _torch_version() -> str:
    try:
        return f"{importlib.metadata.version('torch')} {sys.version_info[:2]}"
    except importlib.metadata.PackageNotFoundError:
        return ""


def _closed_counters(kind: str) -> str:
    match kind:
        case "cuda":
            return profiler.closed_counters()
        case "sycl":
            return perf_events.closed_counters()
    return "a device of this kind has no counters"
