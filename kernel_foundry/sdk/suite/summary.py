"""A suite in the field's numbers, over the tasks whose runs have all ended.

Tasks that a trivial answer passes are counted apart. A task that was refused or could not be run
counts as one that was not solved: the share is one of all tasks.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kernel_foundry.domain.check import Trust
from kernel_foundry.sdk.statistics.bootstrap import Bootstrap
from kernel_foundry.sdk.statistics.estimate import Estimate
from kernel_foundry.sdk.suite.entry import EntryState
from kernel_foundry.sdk.suite.numbers.fast_p import THRESHOLDS, fast_p
from kernel_foundry.sdk.suite.numbers.speedup_change import mean_speedup
from kernel_foundry.sdk.suite.numbers.typical_speedup import geometric_mean, median
from kernel_foundry.sdk.suite.numbers.win import win
from kernel_foundry.sdk.suite.results import FASTEST, EntryResult


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareAbove:
    """fast_p or win@p for one p."""

    p: float
    share: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineNumbers:
    """Speed-ups over one baseline."""

    baseline: str
    """Its name, or `results.FASTEST`."""
    fast: tuple[ShareAbove, ...]
    """fast_p, of tasks."""
    win: tuple[ShareAbove, ...]
    """win@p, of workloads."""
    geometric_mean: Estimate | None
    """Over the tasks that were solved; None where none was."""
    median: Estimate | None
    """The same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteSummary:
    """A suite in the field's numbers."""

    tasks: int
    """That ended and are not degenerate: what the shares are of."""
    workloads: int
    """Of these tasks, timed ones."""
    unfinished: tuple[str, ...]
    """Tasks with runs that have not ended; nothing of them is counted."""
    degenerate: tuple[str, ...]
    """Tasks that a trivial answer passes."""
    refused: int
    """Runs; they count as not solved."""
    failed: int
    """Runs; they count as not solved."""
    suspect: int
    """Runs whose winner is not fully trusted; they count as solved."""
    correctness: Estimate | None
    """Share of tasks with a correct kernel; None without any task."""
    baselines: tuple[BaselineNumbers, ...]
    """The fastest one of each workload first."""
    sol_score: Estimate | None
    """Mean SOL score, from 0 to 1; None where no task has one."""
    sol_scored: int
    """Tasks that have one."""
    effective_bits: Estimate | None
    """Median over solved tasks; None where none was audited."""
    own_share: Estimate | None
    """Mean share of device time in own kernels over solved tasks; None where none was solved."""
    cost_usd: float
    seconds: float
    """Wall-clock seconds of all runs together."""
    evaluations: int
    tokens: int


def by_task(results: Sequence[EntryResult]) -> dict[str, list[EntryResult]]:
    """Return the results of each task, in the order of the plan."""
    tasks: dict[str, list[EntryResult]] = {}
    for result in results:
        tasks.setdefault(result.entry.task.name, []).append(result)
    return tasks


def counted(results: Sequence[EntryResult]) -> dict[str, list[EntryResult]]:
    """Return the results of the tasks that count: ended, and no trivial answer passes."""
    return {
        name: runs
        for name, runs in by_task(results).items()
        if all(r.entry.has_ended for r in runs) and not any(r.is_degenerate for r in runs)
    }


def summary_of(results: Sequence[EntryResult]) -> SuiteSummary:
    """Return a suite's numbers."""
    tasks = list(counted(results).values())
    runs = [result for task in tasks for result in task]
    names = dict.fromkeys(name for result in runs for name in result.baselines)
    scores = [score for score in map(_sol_score, tasks) if score is not None]
    progress = [result.entry.progress for result in results]
    ended = by_task(results).items()
    return SuiteSummary(
        tasks=len(tasks),
        workloads=sum(len(task[0].speedups(FASTEST)) for task in tasks),
        unfinished=tuple(n for n, of in ended if not all(r.entry.has_ended for r in of)),
        degenerate=tuple(n for n, of in ended if any(r.is_degenerate for r in of)),
        refused=sum(r.entry.state is EntryState.REFUSED for r in runs),
        failed=sum(r.entry.state is EntryState.FAILED for r in runs),
        suspect=sum(r.verdict is not None and r.verdict.trust is not Trust.FULL for r in runs),
        correctness=_correctness(tasks),
        baselines=tuple(_over(tasks, name) for name in (FASTEST, *names)) if tasks else (),
        sol_score=_mean(scores),
        sol_scored=len(scores),
        effective_bits=_median([r.effective_bits for r in runs]),
        own_share=_mean([r.own_share for r in runs]),
        cost_usd=sum(p.cost_usd for p in progress),
        seconds=sum(p.seconds for p in progress),
        evaluations=sum(p.evaluations for p in progress),
        tokens=sum(p.tokens for p in progress),
    )


def _correctness(tasks: Sequence[Sequence[EntryResult]]) -> Estimate | None:
    solved = [[1.0 if r.verdict else None for r in task] for task in tasks]
    return fast_p(solved, 0.0) if solved else None


def _sol_score(task: Sequence[EntryResult]) -> float | None:
    """Mean over a task's runs, those that have one."""
    found = [score for score in (r.sol_score for r in task) if score is not None]
    return sum(found) / len(found) if found else None


def _over(tasks: Sequence[Sequence[EntryResult]], baseline: str) -> BaselineNumbers:
    measured = [[r.speedup(baseline) for r in task] for task in tasks]
    speedups = [[None if m is None else m.value for m in task] for task in measured]
    on_workloads = [[r.speedups(baseline) for r in task] for task in tasks]
    solved = [of for of in ([m for m in task if m is not None] for task in measured) if of]
    # Of one task there is nothing to draw over: the interval is that of its own measurements.
    alone = mean_speedup(solved[0]) if len(solved) == 1 else None
    return BaselineNumbers(
        baseline=baseline,
        fast=tuple(ShareAbove(p=p, share=fast_p(speedups, p)) for p in THRESHOLDS),
        win=tuple(ShareAbove(p=p, share=win(on_workloads, p)) for p in THRESHOLDS),
        geometric_mean=alone or geometric_mean(speedups),
        median=alone or median(speedups),
    )


def _median(values: Sequence[float | None]) -> Estimate | None:
    known = np.array([v for v in values if v is not None])
    return Bootstrap(len(known)).median(known) if len(known) else None


def _mean(values: Sequence[float | None]) -> Estimate | None:
    known = np.array([v for v in values if v is not None])
    return Bootstrap(len(known)).mean(known) if len(known) else None
