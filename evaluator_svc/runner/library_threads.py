"""How many threads library calls on a CPU have: all of them, or one if that is faster now.

Threads that share a core with another program spin while they wait for each other, and a call of
2 ms takes 100. Baselines are timed on one thread, too: see `evaluator_svc/judge/baselines.py`.
"""

import math
import time
from collections.abc import Callable
from functools import cache
from typing import Final

import torch

from evaluator_svc.hardware.openmp import set_threads

_ROUNDS: Final = 3
_SECONDS: Final = 0.5
"""Nothing more is tried after that: slow calls say enough, or are worth no choice."""


def choose_threads(run: Callable[[], object]) -> int:
    """Have the threads with which `run` was faster in its best call; return how many."""
    every = _every()
    best = {every: math.inf, 1: math.inf}  # one entry where every is one
    started = time.monotonic()
    try:
        for count in list(best) * _ROUNDS if len(best) > 1 else ():
            before = time.monotonic()
            if before - started > _SECONDS:
                break
            set_threads(count)
            run()
            best[count] = min(best[count], time.monotonic() - before)
    finally:
        chosen = min(best, key=lambda count: best[count])
        set_threads(chosen)
    return chosen


@cache
def _every() -> int:
    """Threads that this process began with: torch tells those that were chosen last."""
    return torch.get_num_threads()
