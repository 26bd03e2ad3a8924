"""One runner for all configurations of a sweep, and the judge's word on each.

A runner that crashes or hangs is replaced, and its inputs are drawn anew: nobody knows what it
did to them. Knows nothing of building and of who is the best.
"""

import secrets
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from evaluator_svc.devices.site import DeviceSite
from evaluator_svc.messages.exchange import MeasurePlan
from evaluator_svc.messages.locked import (
    CandidateFailure,
    DoneReply,
    TimeReply,
    WorkloadNames,
)
from evaluator_svc.messages.plausible import bounded
from evaluator_svc.messages.sweep import (
    ConfigurationFailure,
    SweepOpen,
    TimeAgainReply,
    TimeAgainRequest,
    TryReply,
    TryRequest,
)
from evaluator_svc.pipeline.memory_plan import MemoryPlan
from evaluator_svc.pipeline.run import LAST_SECONDS, DrawnInputs, failure_of
from evaluator_svc.pipeline.sweep_build import BuiltConfiguration
from evaluator_svc.processes.answers import ask_candidate, nonsense
from evaluator_svc.processes.process import ChildProcess
from kernel_foundry.domain.admission import Admission
from kernel_foundry.domain.sweep import SweepRequest
from kernel_foundry.errors import KernelFoundryError

_OPEN_SECONDS: Final = 60.0
_FIRST_SAMPLES: Final = (5, 7)
"""Fewest and most of a configuration's first block."""
_BLOCK_SAMPLES: Final = (10, 20)
"""The same of each further block."""
_BLOCK_SHARE: Final = 0.25
"""Of `timing_seconds`, for one block on one workload."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A configuration that is right, with its first block of samples."""

    timed: tuple[TimeReply, ...]
    load_ms: float
    verification_ms: float
    benchmark_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptFailure:
    """A configuration that is at fault."""

    failure: CandidateFailure
    is_not_meant: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Another block of samples."""

    timed: tuple[TimeReply, ...]
    benchmark_ms: float


class SweepRunner:
    """Tries configurations one after the other; used by one thread.

    Args:
        site: The device.
        request: The sweep.
        admission: The task as the device sees it.
        names: What the plan may name in each workload.
        uses_library: Whether the plan makes library calls.
        memory: How the workloads are judged.
    """

    def __init__(
        self,
        site: DeviceSite,
        request: SweepRequest,
        admission: Admission,
        names: tuple[WorkloadNames, ...],
        *,
        uses_library: bool,
        memory: MemoryPlan,
    ) -> None:
        self._memory = memory
        self._site = site
        self._judge = site.judge
        """The one that draws: a successor, should it die, knows nothing of these draws."""
        self._request = request
        self._admission = admission
        self._names = names
        self._timed_count = sum(not workload.held_out for workload in admission.workloads)
        self._runners = site.library_runners if uses_library else site.runners
        self._process: ChildProcess | None = None
        self._drawn: list[DrawnInputs] = []
        self._loaded: set[int] = set()
        """Configurations that the present process holds."""
        self._to_forget: set[int] = set()

    def open(self) -> None:
        """Draw the inputs and map them, ahead of the first attempt."""
        self._opened()

    def attempt(
        self, built: BuiltConfiguration, incumbent_upper_ns: tuple[float, ...]
    ) -> Attempt | AttemptFailure:
        """Load, run, time and verify one configuration."""
        tried = self._try(built, incumbent_upper_ns)
        if isinstance(tried, AttemptFailure):
            return tried
        started = time.perf_counter()
        failure = self._verify()
        judged_ms = 1e3 * (time.perf_counter() - started)
        if failure is not None:
            return AttemptFailure(failure=failure)
        return Attempt(
            timed=tried.timed,
            load_ms=tried.load_ms,
            verification_ms=tried.run_ms + judged_ms,
            benchmark_ms=tried.time_ms,
        )

    def time_again(self, built: BuiltConfiguration) -> Block | AttemptFailure:
        """Take another block of samples of a configuration that was right."""
        if built.number not in self._loaded:  # the process that held it is gone
            tried = self._try(built, ())
            if isinstance(tried, AttemptFailure):
                return tried
            self._poison()  # else the next one, should it write nothing, would find these outputs
            return Block(timed=tried.timed, benchmark_ms=tried.time_ms)
        request = TimeAgainRequest(
            number=built.number, plan=self._plan(_BLOCK_SAMPLES, warmup_calls=1)
        )
        seconds = self._request.limits.run_seconds + self._timing_deadline_s()
        answer = self._ask(request, TimeAgainReply, seconds, "timing the kernels")
        if isinstance(answer, AttemptFailure):
            return answer
        again: TimeAgainReply = answer
        return Block(timed=again.timed, benchmark_ms=again.time_ms)

    def forget(self, numbers: Sequence[int]) -> None:
        """Let the runner give up configurations that are out of the race."""
        self._to_forget.update(numbers)

    def close(self) -> None:
        """End the runner and give its inputs back."""
        has_ended = True
        if self._process is not None:
            # A driver may take long to end a kernel, and till then it writes into these draws.
            has_ended = (self._process.kill() or self._process.wait(LAST_SECONDS)) is not None
            self._process = None
        self._loaded.clear()
        self._to_forget.clear()
        drawn, self._drawn = self._drawn, []
        for inputs in drawn:
            inputs.close()
            # A judge that is gone holds nothing any more; the next question says so.
            with suppress(KernelFoundryError):
                if has_ended:
                    self._judge.release(inputs.draw.draw)

    def _try(
        self, built: BuiltConfiguration, incumbent_upper_ns: tuple[float, ...]
    ) -> TryReply | AttemptFailure:
        request = TryRequest(
            number=built.number,
            source=built.prepared.source,
            kernels=tuple(unit.kernels for unit in built.prepared.units),
            unit_of_workload=built.prepared.unit_of_workload,
            # The checked run has just warmed everything up.
            plan=self._plan(_FIRST_SAMPLES, warmup_calls=0),
            stop_above_ns=incumbent_upper_ns,
            forget=tuple(sorted(self._to_forget & self._loaded)),
        )
        self._to_forget.clear()
        seconds = self._request.limits.run_seconds + self._timing_deadline_s()
        answer = self._ask(request, TryReply, seconds, "running the kernels", built.built.codes)
        if isinstance(answer, AttemptFailure):
            return answer
        tried: TryReply = answer
        self._loaded.add(built.number)
        return tried

    def _verify(self) -> CandidateFailure | None:
        """Return what is wrong with the outputs; leaves them poisoned for the next one."""
        failure = None
        is_spoiled = False
        # All of them, whatever is found: the next one is not to answer for inputs changed by this.
        for inputs in self._drawn:
            verdict = self._judge.verify(inputs.draw.draw)
            failure = failure or failure_of(verdict, inputs.draw.workload)
            is_spoiled = is_spoiled or bool(verdict.inputs_modified or verdict.stray_writes)
        if is_spoiled:
            self.close()
        else:
            self._poison()
        return failure

    def _poison(self) -> None:
        for inputs in self._drawn:
            if inputs.draw.is_lean:
                self._judge.load_seed(inputs.draw.draw, 0)
            else:
                self._judge.poison(inputs.draw.draw)

    def _ask(
        self,
        request: object,
        expected: type,
        seconds: float,
        doing: str,
        blobs: tuple[bytes, ...] = (),
    ) -> Any:
        """Return the answer of an `expected` type, or an `AttemptFailure`."""
        process = self._opened()
        if isinstance(process, AttemptFailure):
            return process
        answer = ask_candidate(
            process,
            request,
            expected,
            ConfigurationFailure,
            seconds=seconds,
            doing=doing,
            blobs=blobs,
        )
        if isinstance(answer, CandidateFailure):
            self.close()
            return AttemptFailure(failure=answer)
        message = answer.message
        if isinstance(message, ConfigurationFailure):
            if message.is_usable:
                self._poison()
            else:
                self.close()
            findings = bounded(message.findings)
            failure = CandidateFailure(outcome=message.outcome, findings=findings)
            return AttemptFailure(failure=failure, is_not_meant=message.is_not_meant)
        if (
            isinstance(message, TryReply | TimeAgainReply)
            and len(message.timed) != self._timed_count
        ):
            self.close()
            return AttemptFailure(failure=nonsense(doing, "times of other workloads"))
        return message

    def _opened(self) -> ChildProcess | AttemptFailure:
        """Return the runner; a new one when there is none."""
        if self._process is None:
            process = self._runners.take()
            self._process = process
            for workload in self._admission.workloads:
                self._drawn.append(self._draw(workload.workload))
            answer = ask_candidate(
                process,
                self._open_request(),
                DoneReply,
                seconds=_OPEN_SECONDS,
                doing="opening the inputs",
                descriptors=tuple(d for inputs in self._drawn for d in inputs.descriptors),
            )
            if isinstance(answer, CandidateFailure):
                self.close()
                return AttemptFailure(failure=answer)
        return self._process

    def _open_request(self) -> SweepOpen:
        site = self._site
        return SweepOpen(
            device=site.spec,
            workloads=self._names,
            draws=tuple(inputs.draw for inputs in self._drawn),
            timed=tuple(w.workload for w in self._admission.workloads if not w.held_out),
            pool_wanted_bytes=2 * site.spec.cache_bytes,
            pool_limit_bytes=0 if self._memory.lean else site.settings.pool_limit_bytes,
            library_ops=self._request.task.library_ops,
            tf32=self._request.task.tf32,
        )

    def _draw(self, workload: str) -> DrawnInputs:
        draw, descriptors = self._judge.draw(
            self._request.task,
            workload,
            self._admission.tolerance,
            (secrets.randbits(31),),
            is_lean=workload in self._memory.lean,
        )
        return DrawnInputs(draw=draw, descriptors=descriptors)

    def _plan(self, samples: tuple[int, int], *, warmup_calls: int) -> MeasurePlan:
        fewest, most = samples
        return MeasurePlan(
            seconds=_BLOCK_SHARE * self._request.limits.timing_seconds,
            min_samples=fewest,
            max_samples=most,
            warmup_calls=warmup_calls,
            flush_bytes=2 * self._site.spec.cache_bytes,
        )

    def _timing_deadline_s(self) -> float:
        return 2 * _BLOCK_SHARE * self._request.limits.timing_seconds * len(self._names)
