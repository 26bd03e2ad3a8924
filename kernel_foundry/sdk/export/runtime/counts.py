"""How often kernels ran, and how often the reference did in their place."""

import collections
import itertools
import logging
import threading
from collections.abc import Callable
from typing import Any, Final

from kernel_foundry.sdk.export.runtime.task import BACKWARD, TASK

_MOST_REASONS: Final = 64


class Counts:
    """How often kernels ran, and the reference, and why.

    Args:
        what: What they compute.
    """

    def __init__(self, what: str = TASK) -> None:
        self._what = what
        self._lock = threading.RLock()  # a signal's handler may count within a count
        self.add_kernel: Callable[[], int] = itertools.count().__next__
        """Counts a call of kernels: one step of the interpreter, so that no thread's is lost."""
        self._looks = 0
        self.reset()

    def reset(self) -> None:
        """Begin anew."""
        with self._lock:
            self._before = self._kernels()
            self.reasons: collections.Counter[str] = collections.Counter()
            self.last_reason = ""

    def shown(self) -> dict[str, Any]:
        """Return all of it."""
        with self._lock:
            reasons = dict(self.reasons)
            return {
                "kernel": self._kernels() - self._before,
                "reference": sum(reasons.values()),
                "last_reason": self.last_reason,
                "reasons": reasons,
            }

    def _kernels(self) -> int:
        """All calls of kernels: to look at the counter moves it as well."""
        self._looks += 1
        return self.add_kernel() + 1 - self._looks

    def reference(self, reason: str) -> None:
        """Count a call of the reference; the first one is logged, since it is slow and right."""
        with self._lock:
            is_first = not self.reasons
            known = reason in self.reasons or len(self.reasons) < _MOST_REASONS
            self.reasons[reason if known else "other reasons"] += 1
            self.last_reason = reason
        if is_first:
            logging.getLogger(__name__).warning(
                "%s: the reference ran in place of kernels: %s (said once; stats() counts calls)",
                self._what,
                reason,
            )


counts: Final = Counts()
backward_counts: Final = Counts(f"the backward pass of {TASK}")
"""The same of a found backward pass."""


def stats() -> dict[str, Any]:
    """Return how often kernels ran and how often the reference, and why: the last and each reason.

    Calls count when they run: what `torch.compile` traces, and what a CUDA graph replays, does not.
    Where a backward pass was found, `backward` has the same of it.
    """
    return counts.shown() | ({"backward": backward_counts.shown()} if BACKWARD else {})


def reset_stats() -> None:
    """Count from 0 again."""
    counts.reset()
    backward_counts.reset()
