"""How often kernels ran, and how often the reference did in their place."""

import collections
import logging
import threading
from typing import Any, Final

from kernel_foundry.sdk.export.runtime.task import TASK

_MOST_REASONS: Final = 64


class Counts:
    """How often kernels ran, and the reference, and why."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.reset()

    def reset(self) -> None:
        """Begin anew."""
        self.kernel = 0
        self.reasons: collections.Counter[str] = collections.Counter()
        self.last_reason = ""

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
                TASK,
                reason,
            )


counts: Final = Counts()


def stats() -> dict[str, Any]:
    """Return how often kernels ran and how often the reference, and why: the last and each reason.

    Calls count when they run: what `torch.compile` traces, and what a CUDA graph replays, does not.
    """
    reasons = dict(counts.reasons)
    return {
        "kernel": counts.kernel,
        "reference": sum(reasons.values()),
        "last_reason": counts.last_reason,
        "reasons": reasons,
    }


def reset_stats() -> None:
    """Count from 0 again."""
    counts.reset()
