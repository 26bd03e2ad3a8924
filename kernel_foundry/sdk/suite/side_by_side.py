"""Several suites of the same tasks side by side: a column for each, such as one for each device."""

from collections.abc import Sequence
from dataclasses import dataclass

from kernel_foundry.sdk.statistics.estimate import Estimate
from kernel_foundry.sdk.suite.numbers.fast_p import fast_p
from kernel_foundry.sdk.suite.numbers.speedup_change import mean_speedup
from kernel_foundry.sdk.suite.numbers.typical_speedup import geometric_mean
from kernel_foundry.sdk.suite.plan import SuitePlan
from kernel_foundry.sdk.suite.results import FASTEST, EntryResult
from kernel_foundry.sdk.suite.summary import counted


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteColumn:
    """One suite, over all of its own tasks."""

    suite: str
    language: str
    devices: tuple[str, ...]
    models: tuple[str, ...]
    geometric_mean: Estimate | None
    fast_1: Estimate | None
    correctness: Estimate | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCell:
    """One task in one suite."""

    counts: bool
    """False where the suite lacks the task, has not ended it, or a trivial answer passes it."""
    speedup: Estimate | None
    """Over the fastest baseline; None where it was not solved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRow:
    """One task in all suites, in their order."""

    task: str
    cells: tuple[TaskCell, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SideBySide:
    """Suites side by side."""

    suites: tuple[SuiteColumn, ...]
    tasks: tuple[TaskRow, ...]


def side_by_side(suites: Sequence[tuple[SuitePlan, Sequence[EntryResult]]]) -> SideBySide:
    """Return the suites, each with its plan and its results, as one table."""
    by_task = [counted(results) for _, results in suites]
    names = dict.fromkeys(r.entry.task.name for _, results in suites for r in results)
    return SideBySide(
        suites=tuple(
            _column(plan, tasks) for (plan, _), tasks in zip(suites, by_task, strict=True)
        ),
        tasks=tuple(
            TaskRow(task=name, cells=tuple(_cell(tasks.get(name)) for tasks in by_task))
            for name in names
        ),
    )


def _column(plan: SuitePlan, tasks: dict[str, list[EntryResult]]) -> SuiteColumn:
    measured = [[r.speedup(FASTEST) for r in runs] for runs in tasks.values()]
    speedups = [[None if m is None else m.value for m in runs] for runs in measured]
    return SuiteColumn(
        suite=plan.name,
        language=plan.language.value,
        devices=plan.devices,
        models=plan.models,
        geometric_mean=geometric_mean(speedups),
        fast_1=fast_p(speedups, 1.0) if speedups else None,
        correctness=fast_p(speedups, 0.0) if speedups else None,
    )


def _cell(runs: Sequence[EntryResult] | None) -> TaskCell:
    measured = [m for m in (r.speedup(FASTEST) for r in runs or ()) if m is not None]
    speedup = mean_speedup(measured) if measured else None
    return TaskCell(counts=runs is not None, speedup=speedup)
