"""The typical speed-up of the tasks that were solved: geometric mean and median.

Only correct runs count, as in KernelBench's geometric mean: see fast_p for how many these are.
Source of the mean: Fleming and Wallace, How not to lie with statistics, CACM 29 (1986), 218-221.
Intervals: bootstrap over tasks, see `sdk/statistics/bootstrap.py`.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np

from kernel_foundry.sdk.statistics.bootstrap import Bootstrap
from kernel_foundry.sdk.statistics.estimate import Estimate
from kernel_foundry.sdk.suite.numbers.fast_p import SpeedupsOfTask


def task_logarithms(tasks: Sequence[SpeedupsOfTask]) -> np.ndarray:
    """Return `(task,)` mean logarithms of the correct runs' speed-ups, of tasks that have any."""
    correct = [[one for one in runs if one is not None] for runs in tasks]
    return np.array([float(np.mean(np.log(runs))) for runs in correct if runs])


def geometric_mean(tasks: Sequence[SpeedupsOfTask]) -> Estimate | None:
    """Return the geometric mean over the tasks that were solved; None where none was."""
    return _of_logarithms(tasks, lambda bootstrap, values: bootstrap.mean(values))


def median(tasks: Sequence[SpeedupsOfTask]) -> Estimate | None:
    """Return the median over the tasks that were solved; None where none was."""
    return _of_logarithms(tasks, lambda bootstrap, values: bootstrap.median(values))


def _of_logarithms(
    tasks: Sequence[SpeedupsOfTask], statistic: Callable[[Bootstrap, np.ndarray], Estimate]
) -> Estimate | None:
    values = task_logarithms(tasks)
    if not len(values):
        return None
    found = statistic(Bootstrap(len(values)), values)
    return Estimate(value=math.exp(found.value), low=math.exp(found.low), high=math.exp(found.high))
