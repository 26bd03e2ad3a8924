"""How often kernels ran, and how often the reference did in their place."""

import collections
import logging
import threading
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
        self._lock = threading.Lock()
        self.reset()

    def reset(self) -> None:
        """Begin anew."""
        self.kernel = 0
        self.reasons: collections.Counter[str] = collections.Counter()
        self.last_reason = ""

    def shown(self) -> dict[str, Any]:
        """Return all of it."""
        reasons = dict(self.reasons)
        return {
            "kernel": self.kernel,
            "reference": sum(reasons.values()),
            "last_reason": self.last_reason,
            "reasons": reasons,
        }

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
