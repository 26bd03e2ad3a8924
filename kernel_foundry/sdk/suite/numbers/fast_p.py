"""fast_p: the share of all tasks that are solved correctly and more than p times faster.

Source: Ouyang et al., KernelBench (2502.10517), sec. 4.2: the sum over all N tasks of
[correct and speed-up > p] over N. fast_0 is the correctness rate.
"""

from collections.abc import Sequence
from typing import Final

from kernel_foundry.sdk.statistics.bootstrap import share
from kernel_foundry.sdk.statistics.estimate import Estimate

THRESHOLDS: Final = (0.0, 0.5, 0.8, 1.0, 1.5, 2.0)
"""The values of p that KernelBench reports."""

SpeedupsOfTask = Sequence[float | None]
"""Speed-up of each of a task's runs; None where it found nothing correct."""


def hits(speedups: SpeedupsOfTask, p: float) -> float:
    """Return the share of a task's runs, at least one, that are correct and above `p`."""
    return sum(one is not None and one > p for one in speedups) / len(speedups)


def fast_p(tasks: Sequence[SpeedupsOfTask], p: float) -> Estimate:
    """Return fast_p over `tasks`, at least one, with Wilson's interval over tasks.

    A task with several runs counts by the share of its runs.
    """
    return share(sum(hits(speedups, p) for speedups in tasks), len(tasks))
