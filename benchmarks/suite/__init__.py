"""Operators of the kind and the sizes that kernel benchmarks have, as tasks in one table."""

from benchmarks.suite import (
    chains,
    convolutions,
    networks,
    norms,
    pointwise,
    products,
    reductions,
    sequences,
)
from benchmarks.suite.table import SuiteTask

TASKS: tuple[SuiteTask, ...] = (
    *pointwise.TASKS,
    *norms.TASKS,
    *reductions.TASKS,
    *products.TASKS,
    *convolutions.TASKS,
    *chains.TASKS,
    *sequences.TASKS,
    *networks.TASKS,
)

__all__ = ["TASKS", "SuiteTask"]
