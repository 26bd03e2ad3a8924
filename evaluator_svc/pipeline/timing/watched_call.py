"""A call of a runner, seen by the supervisor's clock and by the operating system."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from evaluator_svc.processes.core_times import CoreTimes
from evaluator_svc.processes.process import ChildProcess

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTimes:
    """Times of a call, from outside; fields as those of `Claim`."""

    wall_ns: float
    waiting_ns: float
    busy_ns: float


def watched(process: ChildProcess, call: Callable[[], _T]) -> tuple[_T, CallTimes]:
    """Return the result of a call of the process, and the time that passed meanwhile."""
    before = CoreTimes.of(process.process_id)
    started = time.perf_counter_ns()
    answer = call()
    wall_ns = float(time.perf_counter_ns() - started)
    after = CoreTimes.of(process.process_id)
    times = CallTimes(
        wall_ns=wall_ns, waiting_ns=after.waiting_since(before), busy_ns=after.busiest_since(before)
    )
    return answer, times
