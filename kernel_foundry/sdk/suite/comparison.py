"""Two suites compared task by task and in all: what changed, and whether it is more than noise.

Tasks are matched by name. Over all tasks both suites are resampled together, so what makes a task
easy for both does not widen the interval.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np

from kernel_foundry.sdk.statistics.bootstrap import Bootstrap
from kernel_foundry.sdk.statistics.estimate import Estimate
from kernel_foundry.sdk.suite.numbers.fast_p import hits
from kernel_foundry.sdk.suite.numbers.speedup_change import speedup_change
from kernel_foundry.sdk.suite.results import FASTEST, EntryResult
from kernel_foundry.sdk.suite.summary import counted

CHANCE: Final = 0.05
"""Share of tasks without a change whose 95 % interval shows one all the same."""


class Change(StrEnum):
    """What became of one task."""

    FASTER = "faster"
    SLOWER = "slower"
    NO_CHANGE_SHOWN = "no change shown"
    SOLVED = "solved"
    """It was not before."""
    LOST = "lost"
    """It was solved before."""
    UNSOLVED = "unsolved"
    """By both."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskChange:
    """One task in both suites."""

    task: str
    change: Change
    ratio: Estimate | None
    """Speed-up over the fastest baseline, after over before; None unless both solved it."""
    same_task: bool
    """Whether both suites had the same reference, workloads and tolerance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteComparison:
    """`after` against `before`."""

    before: str
    after: str
    tasks: tuple[TaskChange, ...]
    """That both have."""
    left_out: tuple[str, ...]
    """Tasks that only one has, that have not ended, or that a trivial answer passes."""
    ratio: Estimate | None
    """Geometric mean of the ratios over tasks that both solved; None without any."""
    fast_1: Estimate | None
    """Difference of fast_1; None without a task."""
    correctness: Estimate | None
    """Difference of the share of solved tasks."""
    expected_by_chance: float
    """How many tasks would be called faster or slower if nothing had changed."""

    def count(self, change: Change) -> int:
        """Return how many tasks changed so."""
        return sum(task.change is change for task in self.tasks)


def compare(
    before: str, old: Sequence[EntryResult], after: str, new: Sequence[EntryResult]
) -> SuiteComparison:
    """Return what changed between two suites.

    Args:
        before: Name of the first suite.
        old: Its results.
        after: Name of the second suite.
        new: Its results.
    """
    old_tasks, new_tasks = counted(old), counted(new)
    common = [name for name in old_tasks if name in new_tasks]
    named = dict.fromkeys(r.entry.task.name for r in (*old, *new))
    tasks = tuple(_task(name, old_tasks[name], new_tasks[name]) for name in common)
    ratios = [np.log(task.ratio.value) for task in tasks if task.ratio is not None]
    pairs = [(old_tasks[name], new_tasks[name]) for name in common]
    return SuiteComparison(
        before=before,
        after=after,
        tasks=tasks,
        left_out=tuple(name for name in named if name not in common),
        ratio=_exponential(Bootstrap(len(ratios)).mean(np.array(ratios))) if ratios else None,
        fast_1=_difference(pairs, 1.0),
        correctness=_difference(pairs, 0.0),
        expected_by_chance=CHANCE * len(ratios),
    )


def _task(name: str, old: Sequence[EntryResult], new: Sequence[EntryResult]) -> TaskChange:
    before = [s for s in (r.speedup(FASTEST) for r in old) if s is not None]
    after = [s for s in (r.speedup(FASTEST) for r in new) if s is not None]
    same = old[0].entry.task.digest == new[0].entry.task.digest
    ratio = speedup_change(before, after) if before and after else None
    return TaskChange(
        task=name,
        change=_change(bool(before), bool(after), ratio),
        ratio=ratio,
        same_task=same,
    )


def _change(was_solved: bool, is_solved: bool, ratio: Estimate | None) -> Change:
    if ratio is None:
        if is_solved:
            return Change.SOLVED
        return Change.LOST if was_solved else Change.UNSOLVED
    if ratio.low > 1:
        return Change.FASTER
    return Change.SLOWER if ratio.high < 1 else Change.NO_CHANGE_SHOWN


def _difference(
    pairs: Sequence[tuple[Sequence[EntryResult], Sequence[EntryResult]]], p: float
) -> Estimate | None:
    """Difference of fast_p over the fastest baseline, resampled by task."""
    if not pairs:
        return None
    apart = [_hits(new, p) - _hits(old, p) for old, new in pairs]
    return Bootstrap(len(apart)).mean(np.array(apart))


def _hits(results: Sequence[EntryResult], p: float) -> float:
    measured = [result.speedup(FASTEST) for result in results]
    return hits([None if m is None else m.value for m in measured], p)


def _exponential(found: Estimate) -> Estimate:
    value, low, high = (float(np.exp(x)) for x in (found.value, found.low, found.high))
    return Estimate(value=value, low=low, high=high)
