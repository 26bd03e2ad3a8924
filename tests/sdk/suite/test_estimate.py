"""What a suite is said to take beforehand: by earlier runs like it, and by its caps."""

import asyncio
from dataclasses import replace
from pathlib import Path
from statistics import median

import pytest

from kernel_foundry.domain.archive import RunBudget
from kernel_foundry.domain.language import Language
from kernel_foundry.sdk.suite.estimate import Pace, estimated, pace_of
from kernel_foundry.sdk.suite.plan import SuitePlan, WholeBudget
from tests.sdk.suite.small_suite import plan_of, services_in, work

PACE = Pace(runs=4, seconds=3.0, cost_usd=0.02)


def test_the_pace_is_that_of_earlier_runs_alike(tmp_path: Path) -> None:
    async def paces() -> None:
        services = services_in(tmp_path)
        plan = plan_of(3)
        assert await pace_of(services.archive, plan) == Pace(runs=0)
        suite = await work(tmp_path, plan, services)
        each = []
        for entry in suite.entries:
            run = await services.archive.get_run(entry.run)
            *_, last = await services.archive.evaluations(entry.run, limit=100)
            took_s = last.archived_unix_s - run.created_unix_s
            each.append((took_s / run.evaluation_count, run.cost_usd / run.evaluation_count))
        found = await pace_of(services.archive, plan)
        assert found.runs == 3
        assert found.seconds == pytest.approx(median(seconds for seconds, _ in each))
        assert found.seconds > 0
        assert found.cost_usd == pytest.approx(median(usd for _, usd in each))
        for other in (replace(plan, language=Language.CUDA), replace(plan, models=("another",))):
            assert (await pace_of(services.archive, other)).runs == 0
        any_model = await pace_of(services.archive, replace(plan, models=()))
        assert any_model.runs == 3

    asyncio.run(paces())


def _plan(each: RunBudget, **whole: float) -> SuitePlan:
    return plan_of(10, each=each, whole=WholeBudget(**whole))  # type: ignore[arg-type]


def test_evaluations_take_what_they_took_before() -> None:
    found = estimated(_plan(RunBudget(evaluations=40)), PACE, runs=10, devices=4)
    assert found.hours == pytest.approx(3 * 40 * 3.0 / 3600)  # ten runs on four devices
    assert found.cost_usd == pytest.approx(10 * 40 * 0.02)
    assert (found.most_hours, found.most_usd) == (None, None)


def test_minutes_tell_how_many_evaluations_are_paid_for() -> None:
    found = estimated(_plan(RunBudget(minutes=2.0)), PACE, runs=10, devices=1)
    assert found.hours == found.most_hours == pytest.approx(20 / 60)
    assert found.cost_usd == pytest.approx(10 * 40 * 0.02)  # 120 s of 3 s each


def test_caps_hold_whatever_earlier_runs_took() -> None:
    each = RunBudget(evaluations=40, minutes=1.0, cost_usd=0.5)
    found = estimated(_plan(each, cost_usd=3.0, hours=0.1), PACE, runs=10, devices=1)
    assert (found.hours, found.most_hours) == pytest.approx((0.1, 0.1))
    assert (found.cost_usd, found.most_usd) == (3.0, 3.0)


def test_without_earlier_runs_only_caps_are_known() -> None:
    each = RunBudget(evaluations=40, minutes=6.0, cost_usd=0.5)
    found = estimated(_plan(each), Pace(runs=0), runs=10, devices=2)
    assert (found.hours, found.cost_usd) == (None, None)
    assert (found.most_hours, found.most_usd) == pytest.approx((0.5, 5.0))
