"""The evaluator: judges candidates on this machine's devices, each in processes of its own.

An async face over synchronous stages in threads. This process loads no driver and no torch and
meets no candidate. Knows nothing of gRPC.
"""

import asyncio
import importlib.metadata
import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from evaluator_svc.device_site import DeviceSite
from evaluator_svc.locked_starter import RUNNER, LockedStarter
from evaluator_svc.messages import Ready
from evaluator_svc.peaks import measure_peaks
from evaluator_svc.pipeline.evaluate import CandidateEvaluation
from evaluator_svc.process import ProcessLauncher
from evaluator_svc.settings import EvaluatorSettings
from kernel_foundry.domain.admission import Admission
from kernel_foundry.domain.device import Availability, Capabilities, IsolationReport, Peaks
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.domain.request import EvaluationRequest
from kernel_foundry.domain.task import Task
from kernel_foundry.errors import (
    BackendUnavailableError,
    DeviceBusyError,
    ShuttingDownError,
    TaskRefusedError,
)

T = TypeVar("T")

_REMEMBERED_REQUESTS: Final = 1024
"""Answers kept for calls that are retried with the same request id."""
_PACKAGES: Final = ("torch", "intel-sycl-rt", "intel-opencl-rt")


class Evaluator:
    """The `kernel_foundry.ports.Evaluator` of this machine.

    A call whose caller goes away is finished all the same: what it holds is bounded by the
    request's own limits.

    Args:
        settings: Every choice; see there.
    """

    def __init__(self, settings: EvaluatorSettings) -> None:
        self._settings = settings
        self._launcher = ProcessLauncher()
        self._starter = LockedStarter(settings, self._launcher)
        self._threads = ThreadPoolExecutor(
            max_workers=settings.parallel_evaluations, thread_name_prefix="evaluation"
        )
        self._face = ThreadPoolExecutor(max_workers=2, thread_name_prefix="capabilities")
        self._lock = threading.Lock()
        self._admission_lock = threading.Lock()
        self._sites: dict[str, DeviceSite] | None = None
        self._availability: list[Availability] = []
        self._isolation = IsolationReport(mechanisms=())
        self._pending = 0
        self._closing = False
        self._answers: OrderedDict[str, asyncio.Future[Evaluation]] = OrderedDict()

    async def capabilities(self) -> Capabilities:
        """Return devices with measured limits, what is missing and why, and the isolation."""
        return await self._in_thread(self._face, self._capabilities)

    async def admit(self, task: Task, device: str = "") -> Admission:
        """Return what the device's judge found out about `task`; remembered on disk."""
        return await self._queued(lambda: self._admit(task, self._site(device)))

    async def evaluate(self, request: EvaluationRequest) -> Evaluation:
        """Judge one candidate; the same request id is judged once."""
        if not request.request_id:
            return await self._queued(lambda: self._evaluate(request))
        answer = self._answers.get(request.request_id)
        if answer is None or (answer.done() and not _succeeded(answer)):
            answer = asyncio.ensure_future(self._queued(lambda: self._evaluate(request)))
            self._answers[request.request_id] = answer
            while len(self._answers) > _REMEMBERED_REQUESTS:
                self._answers.popitem(last=False)
        return await asyncio.shield(answer)

    async def close(self) -> None:
        """Let what runs finish, then stop every process."""
        self._closing = True
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        self._threads.shutdown()
        self._face.shutdown()
        for site in (self._sites or {}).values():
            site.close()
        self._launcher.close()

    async def _queued(self, work: Callable[[], T]) -> T:
        """Run `work` on an evaluation thread when its turn comes."""
        room = self._settings.parallel_evaluations + self._settings.queue_limit
        if self._pending >= room:
            raise DeviceBusyError(f"{self._pending} calls wait already", pending=str(room))
        self._pending += 1
        try:
            return await self._in_thread(self._threads, work)
        finally:
            self._pending -= 1

    async def _in_thread(self, threads: ThreadPoolExecutor, work: Callable[[], T]) -> T:
        if self._closing:
            raise ShuttingDownError("the evaluator is closing")
        return await asyncio.get_running_loop().run_in_executor(threads, work)

    def _capabilities(self) -> Capabilities:
        sites = self._opened_sites()
        for site in sites.values():
            self._peaks(site)
            site.warm_up()
        return Capabilities(
            devices=tuple(site.spec for site in sites.values()),
            availability=tuple(self._availability),
            isolation=self._isolation,
            versions=_versions(),
        )

    def _evaluate(self, request: EvaluationRequest) -> Evaluation:
        site = self._site(request.device)
        admission = self._admit(request.task, site)
        if not admission.admitted:
            reasons = "; ".join(admission.refusals)
            raise TaskRefusedError(f"the task is not admitted: {reasons}", reasons=reasons)
        peaks = self._peaks(site)
        return CandidateEvaluation(site, request, admission, peaks).evaluate()

    def _admit(self, task: Task, site: DeviceSite) -> Admission:
        with self._admission_lock:
            peaks = self._peaks(site)  # the speed of light follows from them
            admission = site.remembered_admission(task)
            if admission is None:
                judge = site.judge
                judge.facts()
                # Baselines are timed, so nothing else may use the device meanwhile.
                with site.gate.exclusive():
                    admission = judge.admit(task, peaks)
                site.remember_admission(task, admission)
            return admission

    def _site(self, device: str) -> DeviceSite:
        sites = self._opened_sites()
        if not device and sites:
            return next(iter(sites.values()))
        if device not in sites:
            known = ", ".join(sites) or "none"
            reasons = "; ".join(f"{a.kind}: {a.reason}" for a in self._availability if a.reason)
            raise BackendUnavailableError(
                f"there is no device {device!r} here; there is {known}" + (f" ({reasons})" if
                reasons else ""),
                device=device,
                reasons=reasons,
            )  # fmt: skip
        return sites[device]

    def _opened_sites(self) -> dict[str, DeviceSite]:
        with self._lock:
            if self._sites is None:
                self._availability = []
                self._sites = dict(
                    found for kind in self._settings.device_kinds for found in self._probe(kind)
                )
            return self._sites

    def _probe(self, kind: str) -> list[tuple[str, DeviceSite]]:
        process, ready = self._starter.start(RUNNER, kind=kind, index=0)
        process.kill()
        self._isolation = ready.isolation
        self._availability.append(
            Availability(kind=kind, available=ready.device is not None, reason=ready.unavailable)
        )
        return [self._open(ready)] if ready.device is not None else []

    def _open(self, ready: Ready) -> tuple[str, DeviceSite]:
        site = DeviceSite(
            ready, settings=self._settings, starter=self._starter, launcher=self._launcher
        )
        return site.spec.id, site

    def _peaks(self, site: DeviceSite) -> Peaks:
        with site.peaks_lock:
            if site.spec.peaks is not None:
                return site.spec.peaks
            peaks = site.remembered_peaks()
            if peaks is None:
                with site.gate.exclusive():
                    peaks = measure_peaks(site)
            site.remember_peaks(peaks)
            return peaks


def _succeeded(answer: "asyncio.Future[Evaluation]") -> bool:
    return not answer.cancelled() and answer.exception() is None


def _versions() -> tuple[str, ...]:
    found = []
    for package in _PACKAGES:
        try:
            found.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return tuple(found)
