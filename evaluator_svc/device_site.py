"""All that belongs to one device: its gate, its judge, its ready processes, its caches.

Knows nothing of the order in which a candidate is judged (see `pipeline`).
"""

import dataclasses
import importlib.metadata
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from evaluator_svc.device_gate import DeviceGate
from evaluator_svc.disk_cache import DiskCache
from evaluator_svc.judge_client import JudgeClient
from evaluator_svc.locked_starter import BUILDER, RUNNER, LockedStarter
from evaluator_svc.messages import Ready
from evaluator_svc.object_cache import ObjectCache
from evaluator_svc.process import ChildProcess, ProcessCommand, ProcessLauncher
from evaluator_svc.sandbox.host_paths import package_root
from evaluator_svc.settings import EvaluatorSettings
from evaluator_svc.spare_pool import SparePool
from kernel_foundry.domain.admission import Admission
from kernel_foundry.domain.device import DeviceSpec, IsolationReport, Peaks
from kernel_foundry.domain.digest import content_digest
from kernel_foundry.domain.plain import PlainError, from_json, to_json
from kernel_foundry.domain.task import Task
from kernel_foundry.errors import BackendUnavailableError

_JUDGE: Final = "evaluator_svc.judge"
_JUDGE_VARIABLES: Final = (
    "PATH", "HOME", "LANG", "TMPDIR", "LD_LIBRARY_PATH", "CC", "CXX", "XDG_CACHE_HOME",
    "TORCHINDUCTOR_CACHE_DIR",
)  # fmt: skip
"""torch.compile looks for a compiler and a cache; no key or token is among these."""


class DeviceSite:
    """One device of an evaluator.

    Args:
        ready: What a probe of the device said; it has a device.
        settings: The evaluator's settings.
        starter: Starts builders and runners.
        launcher: Starts the judge.
    """

    def __init__(
        self,
        ready: Ready,
        *,
        settings: EvaluatorSettings,
        starter: LockedStarter,
        launcher: ProcessLauncher,
    ) -> None:
        if ready.device is None:
            raise BackendUnavailableError(ready.unavailable)
        self.spec: DeviceSpec = ready.device
        self.compiler_version = ready.compiler_version
        self.isolation: IsolationReport = ready.isolation
        self.settings = settings
        self.gate = DeviceGate()
        self.objects = ObjectCache(settings.cache_dir / "objects")
        self._facts = DiskCache(settings.cache_dir / "facts")
        self._starter = starter
        self._launcher = launcher
        self._judge: JudgeClient | None = None
        self._judge_lock = threading.Lock()
        self.peaks_lock = threading.Lock()
        """Held while the device's limits are looked up or measured."""
        self._admissions: dict[str, Admission] = {}
        self.helpers = ThreadPoolExecutor(thread_name_prefix="judge-call")
        self.builders = self._pool(BUILDER)
        self.runners = self._pool(RUNNER)

    @property
    def judge(self) -> JudgeClient:
        """The device's judge, started on first use and again only if it is lost."""
        with self._judge_lock:
            if self._judge is None or not self._judge.is_running:
                self._judge = self._start_judge()
            return self._judge

    def warm_up(self) -> None:
        """Start the judge and the spare processes, in the background."""
        self.helpers.submit(self.judge.facts)
        self.refill()

    def refill(self) -> None:
        """Replace used builders and runners, in the background."""
        self.builders.refill()
        self.runners.refill()

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
        """Return what was found out about `task` before, or None."""
        key = self._admission_key(task)
        if key not in self._admissions:
            entry = self._facts.get(key)
            if entry is None:
                return None
            try:
                self._admissions[key] = from_json(Admission, entry)
            except PlainError:
                return None
        return self._admissions[key]

    def remember_admission(self, task: Task, admission: Admission) -> None:
        """Keep an admission, here and on disk."""
        key = self._admission_key(task)
        self._admissions[key] = admission
        self._facts.put(key, to_json(admission).encode())

    def close(self) -> None:
        """End every process of the device."""
        self.builders.close()
        self.runners.close()
        # Calls to the judge first: one that finds it gone would start another.
        self.helpers.shutdown()
        with self._judge_lock:
            if self._judge is not None:
                self._judge.close()

    def _pool(self, module: str) -> SparePool:
        kind, _, index = self.spec.id.partition(":")

        def start() -> ChildProcess:
            process, ready = self._starter.start(module, kind=kind, index=int(index))
            if ready.device is None:
                process.kill()
                raise BackendUnavailableError(ready.unavailable, device=self.spec.id)
            return process

        return SparePool(start, gate=self.gate, size=self.settings.spare_processes)

    def _start_judge(self) -> JudgeClient:
        threads = str(self.settings.thread_count)
        kept = {n: os.environ[n] for n in _JUDGE_VARIABLES if n in os.environ}
        variables = {
            **kept,
            "PYTHONPATH": package_root(),
            "OMP_NUM_THREADS": threads,
            "DPCPP_CPU_NUM_CUS": threads,
        }
        command = ProcessCommand(
            module=_JUDGE,
            environment=tuple(variables.items()),
            wrapping=None,
            accepts_descriptors=True,
        )
        return JudgeClient(
            self._launcher.start(command),
            device=self.spec,
            threads=self.settings.thread_count,
            answer_seconds=self.settings.judge_seconds,
            admission_seconds=self.settings.admission_seconds,
        )

    def _peaks_key(self) -> str:
        return content_digest("peaks 2", *self._identity())

    def _admission_key(self, task: Task) -> str:
        return content_digest(
            "admission 2", task.digest, *self._identity(), _torch_version(), repr(self.spec.peaks)
        )

    def _identity(self) -> tuple[str, ...]:
        spec = self.spec
        threads = str(self.settings.thread_count)
        return (spec.id, spec.name, spec.architecture, spec.driver_version, threads)


def _torch_version() -> str:
    try:
        return f"{importlib.metadata.version('torch')} {sys.version_info[:2]}"
    except importlib.metadata.PackageNotFoundError:
        return ""
