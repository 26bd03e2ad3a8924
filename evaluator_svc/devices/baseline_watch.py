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
class _Standing:
    seen_s: float
    verdict_count: int = 0
    was_loaded: bool = False
    warnings: tuple[str, ...] = ()


class BaselineWatch:
    """Remembers for each task of one device; may be called from any thread.

    Args:
        clock: Seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._standings: dict[str, _Standing] = {}

    def knows(self, task: str) -> bool:
        """Return whether this process has seen the baselines of the task (its digest) hold."""
        with self._lock:
            return task in self._standings

    def saw(self, task: str, *, is_loaded: bool, warnings: tuple[str, ...] = ()) -> None:
        """Note that the baselines were timed just now.

        Args:
            task: Its digest.
            is_loaded: Whether the host was loaded then.
            warnings: What is to be said of them until they are looked at again.
        """
        with self._lock:
            self._standings[task] = _Standing(
                seen_s=self._clock(), was_loaded=is_loaded, warnings=warnings
            )

    def warnings(self, task: str) -> tuple[str, ...]:
        """Return what is to be said of the baselines as they were last seen."""
        with self._lock:
            standing = self._standings.get(task)
            return standing.warnings if standing else ()

    def is_due(self, task: str, *, is_loaded: bool) -> bool:
        """Count a verdict that relies on the baselines; return whether to look at them first.

        Args:
            task: Its digest.
            is_loaded: Whether the verdict's own times are of a loaded moment.
        """
        with self._lock:
            standing = self._standings.get(task)
            if standing is None:
                return True
            standing.verdict_count += 1
            age_s = self._clock() - standing.seen_s
            if standing.was_loaded or is_loaded:
                return age_s > LOADED_RECHECK_SECONDS
            return standing.verdict_count > RECHECK_VERDICTS or age_s > RECHECK_SECONDS
