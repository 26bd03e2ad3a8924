"""What the loop asks to be profiled, and that it keeps to its share of the time."""

import dataclasses

import pytest

from archive_svc.archive import LocalArchive
from kernel_foundry.domain.archive import Run, RunState
from kernel_foundry.domain.evaluation import Evaluation, StageTime
from kernel_foundry.domain.profile import Profile
from kernel_foundry.domain.request import EvaluationRequest
from kernel_foundry.sdk.loop import budget_meter
from kernel_foundry.sdk.loop.budget import (
    ENOUGH_SECONDS,
    PROFILE_CREDIT_SECONDS,
    PROFILE_SHARE,
    Budget,
)
from kernel_foundry.sdk.loop.budget_meter import BudgetMeter
from kernel_foundry.sdk.loop.progress import RunResult
from kernel_foundry.testing.evaluator import FakeEvaluator
from tests.domain_values import run_spec
from tests.evolution import evolution_of

RUN = Run(
    spec=run_spec(),
    state=RunState.RUNNING,
    created_unix_s=0.0,
    evaluation_count=0,
    best_speedup=None,
    cost_usd=0.0,
)


class _Profiling(FakeEvaluator):
    """Profiles whatever it is asked to profile, in no time but that which it reports."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[EvaluationRequest] = []

    async def evaluate(self, request: EvaluationRequest) -> Evaluation:
        self.asked.append(request)
        evaluation = await super().evaluate(request)
        if request.profile_seconds is None:
            return evaluation
        name = request.task.workloads[0].name
        return dataclasses.replace(
            evaluation,
            profile=Profile(workload=name, call_ns=1e3, minimal_bytes=1, tool="ncu"),
            stages=(StageTime(stage="profile", wall_ms=1.0),),
        )


async def _run(
    archive: LocalArchive, evaluator: FakeEvaluator, without: tuple[str, ...] = ()
) -> RunResult:
    run = await archive.create_run(run_spec(seed=5, without=without))
    return await evolution_of(run, archive, Budget(evaluations=8), evaluator=evaluator).run()


async def test_what_is_judged_may_be_profiled_and_the_winner_keeps_its_profile(
    archive: LocalArchive,
) -> None:
    evaluator = _Profiling()
    ended = await _run(archive, evaluator)

    searched = [request for request in evaluator.asked if not request.fresh_baselines]
    assert all(request.profile_seconds is not None for request in searched)
    promoted = [request for request in evaluator.asked if request.fresh_baselines]
    assert promoted
    assert {request.profile_seconds for request in promoted} == {None}
    assert ended.winner is not None
    assert ended.winner.evaluation.is_final
    assert ended.winner.evaluation.profile is not None
    assert ended.spent.profile_seconds == pytest.approx(len(searched) / 1e3)


async def test_without_profiles_none_is_asked_for(archive: LocalArchive) -> None:
    evaluator = _Profiling()
    await _run(archive, evaluator, without=("profiles",))

    assert {request.profile_seconds for request in evaluator.asked} == {None}


def test_profiles_take_a_fifth_of_the_time_beyond_their_credit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 0.0
    monkeypatch.setattr(budget_meter.time, "monotonic", lambda: now)
    meter = BudgetMeter(Budget(evaluations=9), RUN)
    for pause in (0.0, 10.0, 3.0, 100.0, 0.0, 0.0):
        now += pause
        with meter.profiling() as seconds:
            now += seconds
        meter.used.profile_seconds += seconds
        assert meter.used.profile_seconds <= PROFILE_SHARE * now + PROFILE_CREDIT_SECONDS
    assert meter.used.profile_seconds > PROFILE_SHARE * now


def test_kernels_that_are_judged_at_the_same_time_may_both_be_profiled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(budget_meter.time, "monotonic", lambda: 0.0)
    meter = BudgetMeter(Budget(evaluations=9), RUN)
    with meter.profiling() as first, meter.profiling() as second, meter.profiling() as third:
        assert first == second == ENOUGH_SECONDS
        assert third < ENOUGH_SECONDS


def test_the_credit_is_a_fifth_of_the_minutes_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget_meter.time, "monotonic", lambda: 0.0)
    with BudgetMeter(Budget(minutes=1.0), RUN).profiling() as seconds:
        assert seconds == pytest.approx(PROFILE_SHARE * 60)


def test_what_a_profile_did_not_use_is_left_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget_meter.time, "monotonic", iter((0.0, *[40.0] * 9)).__next__)
    meter = BudgetMeter(Budget(evaluations=9), RUN)
    with meter.profiling() as first:
        pass
    with meter.profiling() as second:
        pass
    assert first == second > 0.0
