"""The evaluator: judges candidates on this machine's devices, each in processes of its own.

An async wrapper around synchronous stages in threads. This process loads no driver and no torch and
runs no candidate. `service.py` serves it by gRPC.
"""

import asyncio
import contextlib
import dataclasses
import importlib.metadata
import logging
import threading
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Any, Final, TypeVar

from evaluator_svc.devices.build_site import BuildSites
from evaluator_svc.devices.site import DeviceSite
from evaluator_svc.devices.sites import DeviceSites
from evaluator_svc.devices.turns import DeviceTurns
from evaluator_svc.languages import check_kinds
from evaluator_svc.peaks.measure import measure_peaks
from evaluator_svc.pipeline.build_only import CandidateBuild
from evaluator_svc.pipeline.evaluate import CandidateEvaluation
from evaluator_svc.pipeline.foreign.evaluate import ForeignEvaluation
from evaluator_svc.pipeline.memory.evaluation_memory import MemoryWish
from evaluator_svc.pipeline.memory.within_memory import within_memory
from evaluator_svc.pipeline.sweep.sweep import CandidateSweep
from evaluator_svc.pipeline.timing.admission_check import checked_admission
from evaluator_svc.pipeline.trust import evaluate_and_confirm
from evaluator_svc.probing.host import probe_host
from evaluator_svc.processes.call_stop import CallStop, check_call
from evaluator_svc.processes.judge_starter import JudgeStarter
from evaluator_svc.processes.locked_starter import LockedStarter
from evaluator_svc.processes.process import ProcessLauncher
from evaluator_svc.requests.listeners import RETRY_SECONDS
from evaluator_svc.requests.missing_modules import check_imports
from evaluator_svc.requests.request_limits import (
    check_asked_task,
    check_evaluation,
    check_foreign,
    check_sweep,
)
from evaluator_svc.requests.sweeps import Emit, Sweeps
from evaluator_svc.requests.verdicts import Verdicts
from evaluator_svc.settings import EvaluatorSettings
from evaluator_svc.signing import Signer
from evaluator_svc.work_log import logged, logged_verdict
from kernel_foundry.caller import caller
from kernel_foundry.domain.admission import Admission
from kernel_foundry.domain.device import Capabilities, DeviceLoad, IsolationReport, Peaks
from kernel_foundry.domain.evaluation import Evaluation, EvaluationOutcome
from kernel_foundry.domain.foreign import ForeignRequest
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.probe import Probe
from kernel_foundry.domain.request import EvaluationRequest
from kernel_foundry.domain.sweep import ConfigurationResult, SweepRequest
from kernel_foundry.domain.task import Task
from kernel_foundry.errors import (
    BackendUnavailableError,
    DeadlineExceededError,
    DeviceDriverError,
    DeviceMemoryError,
    ProcessLostError,
    ShuttingDownError,
    TaskInvalidError,
    TaskRefusedError,
)
from kernel_foundry.plan.library import LIBRARY_OPS
from kernel_foundry.request_id import working_on

T = TypeVar("T")

_log = logging.getLogger(__name__)

_PACKAGES: Final = ("torch", "intel-sycl-rt", "intel-opencl-rt", "nvidia-cuda-nvrtc")
_OWN_FAILURES: Final = (
    ProcessLostError,
    BackendUnavailableError,
    DeadlineExceededError,
    DeviceDriverError,
)
"""Failures that count against a device: a process on it died, did not start or did not answer, or
its driver refused a call of ours."""
_BUILDS: Final = "builds"
"""Where builds wait that need no device."""
_BUILDS_AT_ONCE: Final = 32
_ADMISSION_SHARE: Final = 0.25
"""Least share of a device's memory that an admission starts with, while others hold the rest."""


class LocalEvaluator:
    """The `kernel_foundry.ports.Evaluator` of this machine.

    A call whose caller goes away is stopped: its process ends, its turn on the device is over. One
    with a request id goes on for `retry_seconds` before that. An admission that has begun goes on
    to its end: it is kept for every later call.

    Args:
        settings: Every choice; see there.
        retry_seconds: How long a call with a request id goes on when nobody waits for it.

    Raises:
        InvalidArgumentError: an unknown device kind.
    """

    def __init__(
        self, settings: EvaluatorSettings, *, retry_seconds: float = RETRY_SECONDS
    ) -> None:
        check_kinds(settings.device_kinds)
        self._launcher = ProcessLauncher()
        self._places = settings.parallel_evaluations
        self._turns = DeviceTurns()
        starter = LockedStarter(settings, self._launcher)
        self._signer = Signer(settings.signing_key)
        self._judges = JudgeStarter(settings)
        self._sites = DeviceSites(settings, starter, self._judges, self._signer)
        self._build_sites = BuildSites(settings, self._judges, self._sites.pools, self._signer)
        self._threads = ThreadPoolExecutor(thread_name_prefix="evaluator")
        self._admission_lock = threading.Lock()
        self._closing = False
        self._verdicts = Verdicts(retry_seconds)
        self._sweeps = Sweeps(retry_seconds)

    async def capabilities(self) -> Capabilities:
        """Return devices with measured limits, what is missing and why, and the isolation."""
        return await self._in_thread(self._threads, self._capabilities)

    async def admit(self, task: Task, device: str = "") -> Admission:
        """Return what the device's judge found out about `task`; remembered on disk."""
        check_asked_task(task)
        # Before devices are opened, which takes seconds where nothing is known of them yet.
        await self._in_thread(self._threads, partial(check_imports, task))
        return await self._on_site(device, None, lambda site: self._admit(task, site))

    async def evaluate(self, request: EvaluationRequest) -> Evaluation:
        """Judge one candidate; the same request id is judged once."""
        check_evaluation(request)
        if not request.request_id:
            return await self._evaluated(request)
        return await self._verdicts.verdict(request, lambda: self._evaluated(request))

    async def evaluate_foreign(self, request: ForeignRequest) -> Evaluation:
        """Judge a foreign kernel, in a process of its own kind."""
        check_foreign(request)
        return await self._on_site(
            request.device,
            None,
            lambda site: logged_verdict(request, site, partial(self._foreign, request, site)),
        )

    def sweep(self, request: SweepRequest) -> AsyncGenerator[ConfigurationResult, None]:
        """Try every configuration of one candidate; yield each result once it is final."""
        check_sweep(request)
        return self._sweeps.results(request, partial(self._swept, request))

    async def probe(self, device: str = "") -> tuple[Probe, ...]:
        """Try what must work and what must not on this host."""
        return await self._on_site(
            device, None, lambda site: probe_host(site, lambda asked: self._evaluate(asked, site))
        )

    async def close(self) -> None:
        """Let what somebody waits for finish, then stop every process."""
        self._closing = True
        self._verdicts.stop_unheard()
        self._sweeps.stop()  # each may have minutes left
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        self._threads.shutdown()
        self._build_sites.close()
        self._sites.close()
        self._judges.close()
        self._launcher.close()

    async def _evaluated(self, request: EvaluationRequest) -> Evaluation:
        with working_on(request.request_id):
            if request.build_only and request.architecture:
                build = partial(self._build, request)
                return await self._in_turn(_BUILDS, self._threads, build, contextlib.ExitStack())
            return await self._on_site(
                request.device,
                request.source.language,
                lambda site: logged_verdict(request, site, partial(self._evaluate, request, site)),
            )

    async def _swept(self, request: SweepRequest, emit: Emit, stopped: threading.Event) -> None:
        with working_on(request.request_id):
            await self._on_site(
                request.device,
                request.source.language,
                lambda site: self._sweep(request, site, emit, stopped),
            )

    async def _on_site(
        self, device: str, language: Language | None, work: Callable[[DeviceSite], T]
    ) -> T:
        """Run `work` on a thread of a device when its turn comes.

        Where any device of a kind will do, one that fails us is left for another.
        """
        # The first call probes the devices, which takes a while.
        await self._in_thread(self._threads, self._sites.working)
        tried: list[str] = []
        while True:
            held = contextlib.ExitStack()
            site = held.enter_context(
                self._sites.reserved(device, language, avoid=tried, user=caller().name)
            )
            tried.append(site.spec.id)
            try:
                result = await self._in_turn(site.spec.id, site.threads, partial(work, site), held)
            except _OWN_FAILURES as error:
                self._sites.failed(site, error)
                if not self._sites.has_others(device, language, tried):
                    raise
            else:
                self._sites.succeeded(site)
                return result

    async def _in_turn(
        self,
        place: str,
        threads: ThreadPoolExecutor,
        work: Callable[[], T],
        held: contextlib.ExitStack,
    ) -> T:
        """Run `work` on a thread when it is the caller's turn.

        The turn ends with the work, which is stopped where the caller leaves; so does what is
        `held`.
        """
        places = _BUILDS_AT_ONCE if place == _BUILDS else self._places
        turn = self._turns.ask(place, caller(), places)
        held.callback(self._turns.end, turn)

        stop = CallStop()

        def held_work() -> T:
            with held, stop.in_force():
                return work()

        try:
            await asyncio.wrap_future(turn.begun)
            running = self._started(threads, held_work)
        except BaseException:
            held.close()
            raise
        running.add_done_callback(_noticed)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            stop.set()
            raise

    async def _in_thread(self, threads: ThreadPoolExecutor, work: Callable[[], T]) -> T:
        return await self._started(threads, work)

    def _started(self, threads: ThreadPoolExecutor, work: Callable[[], T]) -> asyncio.Future[T]:
        if self._closing:
            raise ShuttingDownError("the evaluator is closing")
        return asyncio.get_running_loop().run_in_executor(threads, copy_context().run, work)

    def _capabilities(self) -> Capabilities:
        sites = self._sites.working()
        for site in sites:
            self._peaks(site)
            site.warm_up()
        processes = self._sites.isolation()
        return Capabilities(
            devices=tuple(site.spec for site in sites),
            availability=self._sites.availability(),
            isolation=_in_common(processes),
            versions=_versions(),
            processes=processes,
            profilers=tuple(site.profiler for site in sites),
            loads=tuple(DeviceLoad(device=s.spec.id, pending=s.pending) for s in sites),
        )

    def _evaluate(self, request: EvaluationRequest, site: DeviceSite) -> Evaluation:
        if request.build_only:
            return CandidateBuild(site, request).evaluate()
        unfit = self._unfit_before_admission(request, site)
        if unfit is not None:
            return unfit
        admission = self._admitted(request.task, site)
        peaks = self._peaks(site)
        self._signer.have_key()

        def evaluate(wish: MemoryWish) -> Evaluation:
            return CandidateEvaluation(site, request, admission, peaks, wish).evaluate()

        judged = evaluate_and_confirm(
            lambda: within_memory(evaluate), is_degenerate=bool(admission.degeneracies)
        )
        return self._signer.attested(request.task, request.source, judged)

    def _unfit_before_admission(
        self, request: EvaluationRequest, site: DeviceSite
    ) -> Evaluation | None:
        """Return how a candidate fails that does not build or bind: it waits for no admission.

        None where it does, where the admission is there, and where shapes alone do not tell.
        """
        if site.remembered_admission(request.task) is not None:
            return None
        try:
            built = CandidateBuild(site, request, shapes_alone=True).evaluate()
        except TaskInvalidError:  # the admission knows the values, and what is wrong
            return None
        return built if built.outcome is not EvaluationOutcome.BUILT else None

    def _foreign(self, request: ForeignRequest, site: DeviceSite) -> Evaluation:
        admission = self._admitted(request.task, site)
        peaks = self._peaks(site)
        return within_memory(
            lambda wish: ForeignEvaluation(site, request, admission, peaks, wish).evaluate()
        )

    def _sweep(
        self, request: SweepRequest, site: DeviceSite, emit: Emit, stopped: threading.Event
    ) -> None:
        admission = self._admitted(request.task, site)
        CandidateSweep(site, request, admission, emit=emit, stopped=stopped).run()

    def _admitted(self, task: Task, site: DeviceSite) -> Admission:
        admission = self._admit(task, site)
        if not admission.admitted:
            reasons = "; ".join(admission.refusals)
            raise TaskRefusedError(
                f"the task is not admitted: {reasons} (`kfoundry admit` tells more)",
                reasons=reasons,
            )
        return admission

    def _build(self, request: EvaluationRequest) -> Evaluation:
        site = self._build_sites.site(request.source.language, request.architecture)
        return CandidateBuild(site, request).evaluate()

    def _admit(self, task: Task, site: DeviceSite) -> Admission:
        if not LIBRARY_OPS.keys().isdisjoint(task.library_ops):
            site.warm_up_library()
        with self._admission_lock:
            check_call()
            peaks = self._peaks(site)  # bound and estimate follow from them
            admission = site.remembered_admission(task)
            if admission is None:
                check_imports(task)
                with logged("admission", task, site.spec.id) as ended:
                    meter = site.load_meter()
                    site.judge.facts()
                    admission = self._admitted_within_memory(task, site, peaks)
                    site.remember_admission(task, admission, meter.load())
                    outcome = "admitted" if admission.admitted else "refused"
                    kept = "kept for later calls" if site.keeps_admission(task) else "not kept"
                    ended(f"{outcome}, {kept}")
            elif admission.admitted and not site.baselines.knows(task.digest):
                with logged("look at the baselines", task, site.spec.id) as ended:
                    admission = checked_admission(site, task, admission)
                    ended("done")
            is_timed = any(w.baselines for w in admission.workloads)
            said = site.baselines.warnings(task.digest) if is_timed else ()
            return dataclasses.replace(admission, warnings=(*admission.warnings, *said))

    def _admitted_within_memory(self, task: Task, site: DeviceSite, peaks: Peaks) -> Admission:
        """Admit a task within the memory that is free, or else with all of it.

        Raises:
            TaskInvalidError: all of it is too little.
        """
        account = site.memory
        for least in (int(_ADMISSION_SHARE * account.capacity_bytes), account.capacity_bytes):
            # Baselines are timed, so nothing else may use the device meanwhile.
            with account.lease_rest(least) as lease, site.lock.exclusive():
                try:
                    return site.judge.admit(task, peaks, lease.size_bytes)
                except DeviceMemoryError as error:
                    short = error
                    if lease.size_bytes == account.capacity_bytes:
                        break
        raise TaskInvalidError(
            f"{task.name}: {short.message}; choose smaller sizes in the sidecar", task=task.name
        )

    def _peaks(self, site: DeviceSite) -> Peaks:
        with site.peaks_lock:
            if site.spec.peaks is not None:
                return site.spec.peaks
            peaks = site.remembered_peaks()
            if peaks is None:
                self._judges.wait()  # imports would take cores from what is measured
                _log.info("measuring the peaks of %s, for up to a minute", site.spec.id)
                with site.lock.exclusive():
                    peaks = measure_peaks(site)
            site.remember_peaks(peaks)
            return peaks


def _noticed(ended: "asyncio.Future[Any]") -> None:
    """Take the error of a call whose caller has left, which asyncio would report as lost."""
    if not ended.cancelled():
        ended.exception()


def _in_common(processes: tuple[IsolationReport, ...]) -> IsolationReport:
    """Return the mechanisms that hold for every process, and whatever is missing in any."""
    first = processes[0].mechanisms if processes else ()
    mechanisms = tuple(m for m in first if all(m in p.mechanisms for p in processes))
    missing = dict.fromkeys(reason for p in processes for reason in p.missing)
    return IsolationReport(mechanisms=mechanisms, missing=tuple(missing))


def _versions() -> tuple[str, ...]:
    found = []
    for package in _PACKAGES:
        try:
            found.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return tuple(found)
