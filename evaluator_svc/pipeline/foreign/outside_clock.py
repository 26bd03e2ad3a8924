"""The supervisor's clock around calls of a foreign kernel, and around those of an empty one.

It runs from the key, which decides the inputs, until the outputs are there, which are verified:
work has no other place. What a call costs without any work is told by a process that has met no
candidate. By the shortest of several: whatever else runs only makes them longer. Time that threads
wait for a core counts, since a candidate may have them wait.
"""

import random
import secrets
import time
from collections.abc import Callable, Sequence
from typing import Final

from evaluator_svc.messages.draw import Draw
from evaluator_svc.messages.foreign import (
    ForeignKept,
    ForeignTimeRequest,
    ForeignTimes,
    KeepRequest,
)
from evaluator_svc.messages.locked import CandidateFailure
from evaluator_svc.pipeline.foreign.empty_kernel import EmptyKernel, lost
from evaluator_svc.processes.ask_candidate import ask_candidate
from evaluator_svc.processes.process import ChildProcess
from kernel_foundry.domain.admission import TensorRole
from kernel_foundry.domain.check import Check, CheckKind, CheckResult
from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.finding import Figure, Finding, FindingKind, Severity

_ROUNDS: Final = 6
"""Calls that the clock looks at, and as many empty ones."""
PAUSES_SECONDS: Final = (0.0, 0.0, 0.25, 1.0)
"""Before each try: other programs have the cores for a while only; a forgery lasts."""
_ACCOUNTED_SHARE: Final = 0.5
"""Share of a call's time by the supervisor's clock, less the slack, that its sample must account
for."""
_SLACK_NS: Final = 1e6
"""The slack, to which the spread of the faster half of the empty calls is added."""

Orders = tuple[tuple[int, ...], ...]
"""As `ForeignKept.orders`."""


class OutsideClock:
    """Looks at calls of one workload.

    Args:
        process: The candidate's.
        empty: A kernel that does nothing, made ready for the same inputs.
        draw: The workload's inputs.
        seconds: What a call may take.
        request: The request of one call, by the key of its inputs.
        is_right: Has the judge compare what was handed over, by the same key, in these orders.
    """

    def __init__(
        self,
        process: ChildProcess,
        empty: EmptyKernel,
        *,
        draw: Draw,
        seconds: float,
        request: Callable[[int], ForeignTimeRequest],
        is_right: Callable[[int, Orders], bool],
    ) -> None:
        self._process = process
        self._empty = empty.process
        self._draw = draw
        self._seconds = seconds
        self._request = request
        self._is_right = is_right

    def check(self, best_ns: float) -> Check | CandidateFailure:
        """Return whether the shortest sample accounts for what a call adds to the time outside.

        Raises:
            DeviceMemoryError: as `EmptyKernel.open`.
        """
        workload = self._draw.workload
        calls_ns: list[float] = []
        empties_ns: list[float] = []
        for pause_seconds in PAUSES_SECONDS:
            time.sleep(pause_seconds)
            for is_empty in random.SystemRandom().sample([False, True] * _ROUNDS, 2 * _ROUNDS):
                key = secrets.randbits(63)
                call = self._call(self._empty if is_empty else self._process, key)
                if isinstance(call, CandidateFailure):
                    if is_empty:
                        raise lost(call)
                    return call
                taken_ns, orders = call
                (empties_ns if is_empty else calls_ns).append(taken_ns)
                if not is_empty and not self._is_right(key, orders):
                    return _accounted(best_ns, [taken_ns], [taken_ns], workload)
            check = _accounted(best_ns, calls_ns, empties_ns, workload)
            if check.result is CheckResult.PASSED:
                break
        return check

    def _call(self, process: ChildProcess, key: int) -> tuple[float, Orders] | CandidateFailure:
        """Return the time of a call by our clock, in ns, and the orders of its outputs."""
        request = self._request(key)
        started = time.perf_counter_ns()
        answer = ask_candidate(
            process, request, ForeignTimes, seconds=self._seconds, doing="timing a call"
        )
        if isinstance(answer, CandidateFailure):
            return answer
        orders = take_outputs(process, self._draw, self._seconds)
        taken_ns = float(time.perf_counter_ns() - started)
        return orders if isinstance(orders, CandidateFailure) else (taken_ns, orders)


def take_outputs(process: ChildProcess, draw: Draw, seconds: float) -> Orders | CandidateFailure:
    """Have a timed call's outputs put where the judge finds them; return their orders."""
    slots = [slot for slot in draw.slots if slot.role == TensorRole.OUTPUT.value]
    kept = ask_candidate(
        process,
        KeepRequest(workload=draw.workload, ranks=tuple(len(slot.shape) for slot in slots)),
        ForeignKept,
        seconds=seconds,
        doing="handing over the outputs of a timed call",
    )
    return kept if isinstance(kept, CandidateFailure) else kept.orders


def failure_of_clock(seen: Check) -> CandidateFailure | None:
    """Return the candidate's failure that a check of the clock shows; None if it passed."""
    if seen.result is not CheckResult.FAILED:
        return None
    finding = Finding(
        kind=FindingKind.IMPOSSIBLE_TIME,
        severity=Severity.ERROR,
        message="calls take far longer by the supervisor's clock than the process says",
        evidence=seen.figures,
    )
    return CandidateFailure(outcome=EvaluationOutcome.REJECTED, findings=(finding,))


def _accounted(
    best_ns: float, calls_ns: Sequence[float], empties_ns: Sequence[float], workload: str
) -> Check:
    call_ns, empty_ns = min(calls_ns), min(empties_ns)
    slack_ns = _SLACK_NS + sorted(empties_ns)[len(empties_ns) // 4] - empty_ns
    is_enough = best_ns >= _ACCOUNTED_SHARE * (call_ns - empty_ns - slack_ns)
    figures = {
        "best_sample_ns": best_ns,
        "outside_ns": call_ns,
        "empty_outside_ns": empty_ns,
        "slack_ns": slack_ns,
    }
    return Check(
        kind=CheckKind.CLOCK,
        result=CheckResult.PASSED if is_enough else CheckResult.FAILED,
        workload=workload,
        figures=tuple(Figure(name=n, value=v) for n, v in figures.items()),
        note="the supervisor's clock around calls, and around calls of a kernel that does nothing",
    )
