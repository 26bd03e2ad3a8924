"""When the baselines of a task were last found to hold, and when to look again.

They are timed in `judge/baselines.py`.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

RECHECK_SECONDS: Final = 120.0
"""Longest time for which baselines are used without another look."""
RECHECK_VERDICTS: Final = 16
"""Most verdicts that use them without another look."""
LOADED_RECHECK_SECONDS: Final = 15.0
"""The same time while the host is loaded, or if they were timed then: load comes and goes."""


@dataclass(slots=True)
class _LastLook:
    seen_s: float
    verdict_count: int = 0
    was_loaded: bool = False
    warnings: tuple[str, ...] = ()


class BaselineWatch:
    """Remembers the last look at the baselines of each task of one device; thread-safe.

    Args:
        clock: Seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._last_looks: dict[str, _LastLook] = {}

    def knows(self, task: str) -> bool:
        """Return whether this process has seen the baselines of the task (its digest) hold."""
        with self._lock:
            return task in self._last_looks

    def saw(self, task: str, *, is_loaded: bool, warnings: tuple[str, ...] = ()) -> None:
        """Note that the baselines were timed just now.

        Args:
            task: Its digest.
            is_loaded: Whether the host was loaded then.
            warnings: What is to be said of them until they are looked at again.
        """
        with self._lock:
            self._last_looks[task] = _LastLook(
                seen_s=self._clock(), was_loaded=is_loaded, warnings=warnings
            )

    def warnings(self, task: str) -> tuple[str, ...]:
        """Return the warnings about the baselines at the last look."""
        with self._lock:
            last = self._last_looks.get(task)
            return () if last is None else last.warnings

    def is_due(self, task: str, *, is_loaded: bool) -> bool:
        """Count a verdict that relies on the baselines; return whether to look at them first.

        Args:
            task: Its digest.
            is_loaded: Whether the verdict's own times are of a loaded moment.
        """
        with self._lock:
            last = self._last_looks.get(task)
            if last is None:
                return True
            last.verdict_count += 1
            age_s = self._clock() - last.seen_s
            if last.was_loaded or is_loaded:
                return age_s > LOADED_RECHECK_SECONDS
            return last.verdict_count > RECHECK_VERDICTS or age_s > RECHECK_SECONDS
