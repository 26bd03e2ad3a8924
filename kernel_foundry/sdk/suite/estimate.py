"""What a suite will take before any of it is begun: from earlier runs, and from its caps."""

import math
from dataclasses import dataclass
from statistics import median
from typing import Final

from kernel_foundry.domain.archive import Run
from kernel_foundry.ports import Archive
from kernel_foundry.sdk.archive_pages import all_runs
from kernel_foundry.sdk.suite.plan import SuitePlan

_MOST_RUNS: Final = 20
"""Newest runs that a pace is taken from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """What one evaluation took in earlier runs: the median over them."""

    runs: int
    """How many these are; 0: there are none like it, and nothing is known."""
    seconds: float = 0.0
    cost_usd: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteEstimate:
    """What a suite will take; None where that is neither known nor capped."""

    runs: int
    """That have not ended."""
    devices: int
    pace: Pace
    hours: float | None
    """Expected."""
    cost_usd: float | None
    """Expected."""
    most_hours: float | None
    """By the caps."""
    most_usd: float | None
    """By the caps."""


async def pace_of(archive: Archive, plan: SuitePlan) -> Pace:
    """Return the pace of the newest runs in the language and with the models of `plan`."""
    like: list[Run] = []
    async for run in all_runs(archive):
        if (
            run.spec.language is plan.language
            and run.evaluation_count
            and (not plan.models or set(run.spec.models) == set(plan.models))
        ):
            like.append(run)
        if len(like) == _MOST_RUNS:
            break
    if not like:
        return Pace(runs=0)
    seconds = [await _seconds(archive, run) / run.evaluation_count for run in like]
    return Pace(
        runs=len(like),
        seconds=median(seconds),
        cost_usd=median(run.cost_usd / run.evaluation_count for run in like),
    )


async def _seconds(archive: Archive, run: Run) -> float:
    """How long a run took to its last verdict."""
    last = await archive.evaluations(run.spec.name, after=run.evaluation_count - 1, limit=1)
    return max(last[-1].archived_unix_s - run.created_unix_s, 0.0) if last else 0.0


def estimated(plan: SuitePlan, pace: Pace, *, runs: int, devices: int) -> SuiteEstimate:
    """Return what `runs` runs of a plan take at a pace, on so many devices."""
    rounds = math.ceil(runs / devices)
    each, whole = plan.each, plan.whole
    run_minutes = _least(each.minutes, _expected(each.evaluations, pace, pace.seconds / 60))
    evaluations = each.evaluations
    if evaluations is None and run_minutes is not None and pace.seconds:
        evaluations = math.floor(60 * run_minutes / pace.seconds)
    run_usd = _least(each.cost_usd, _expected(evaluations, pace, pace.cost_usd))
    return SuiteEstimate(
        runs=runs,
        devices=devices,
        pace=pace,
        hours=_least(whole.hours, _times(run_minutes, rounds / 60)) if pace.runs else None,
        cost_usd=_least(whole.cost_usd, _times(run_usd, runs)) if pace.runs else None,
        most_hours=_least(whole.hours, _times(each.minutes, rounds / 60)),
        most_usd=_least(whole.cost_usd, _times(each.cost_usd, runs)),
    )


def _expected(evaluations: int | None, pace: Pace, each: float) -> float | None:
    return None if evaluations is None or not pace.runs else evaluations * each


def _times(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


def _least(*values: float | None) -> float | None:
    return min((v for v in values if v is not None), default=None)
