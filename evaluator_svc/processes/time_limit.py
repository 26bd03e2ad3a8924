"""A limit on the time of a process that does not count what it waited for a core.

On a busy machine a sound candidate takes many times what it takes alone; one that hangs has its
core, or asks for none.
"""

import os
import time
from collections.abc import Callable
from typing import Final

from evaluator_svc.processes.core_times import CoreTimes

_UNWATCHED_SECONDS: Final = 0.1
"""Time after which threads are looked at; most requests are answered before."""
MOST_SHARE: Final = 10.0
"""Multiple of the limit that holds however long the process waited for a core."""
_CORES: Final = len(os.sched_getaffinity(0))
_LEAST_SHARE: Final = 0.05
"""Share of the limit: a process that waited less gets no more time."""


def answers_in_time(answers: Callable[[float], bool], process_id: int, seconds: float) -> bool:
    """Return whether a process answers within `seconds` of its own.

    Args:
        answers: Waits that many seconds at most, and returns whether an answer has begun.
        process_id: Of the process; those below it count as well, and of all threads the one that
            waited longest.
        seconds: The limit.
    """
    latest = time.monotonic() + MOST_SHARE * seconds
    if answers(min(seconds, _UNWATCHED_SECONDS)):
        return True
    left = seconds - _UNWATCHED_SECONDS
    while left > _LEAST_SHARE * seconds:
        before, start_s = CoreTimes.of(process_id), time.monotonic()
        if answers(left):
            return True
        now, passed_seconds = CoreTimes.of(process_id), time.monotonic() - start_s
        waited_seconds = now.longest_wait_since(before) / 1e9
        # Threads that wait for each other's core have nobody else to blame.
        own_seconds = now.on_core_since(before) / 1e9 / _CORES
        left = min(waited_seconds, passed_seconds - own_seconds, latest - time.monotonic())
    return False


class OwnTimer:
    """What a process takes from now on, without what it waits for a core."""

    def __init__(self, process_id: int) -> None:
        self._process_id = process_id
        self._start_s = time.monotonic()
        self._start = CoreTimes.of(process_id)

    def seconds(self) -> float:
        """Return it; of a process that has ended, all that has passed."""
        waited_ns = CoreTimes.of(self._process_id).longest_wait_since(self._start)
        return time.monotonic() - self._start_s - waited_ns / 1e9
