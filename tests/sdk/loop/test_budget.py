"""Each cap ends a run, and only when it is reached."""

import pytest

from kernel_foundry.domain.archive import Run, RunState
from kernel_foundry.domain.traffic_bound import NEVER
from kernel_foundry.sdk.loop.budget import Budget, BudgetUse, StopCause, stop_cause
from kernel_foundry.sdk.loop.budget_meter import BudgetMeter
from tests.domain_values import run_spec

_AT_BOUND = StopCause.TRAFFIC_BOUND


@pytest.mark.parametrize(
    ("budget", "spent", "cause"),
    [
        (Budget(evaluations=5), BudgetUse(evaluations=4), None),
        (Budget(evaluations=5), BudgetUse(evaluations=5), StopCause.EVALUATIONS),
        (Budget(minutes=1), BudgetUse(seconds=59), None),
        (Budget(minutes=1), BudgetUse(seconds=60), StopCause.MINUTES),
        (Budget(cost_usd=1.0), BudgetUse(cost_usd=0.99), None),
        (Budget(cost_usd=1.0), BudgetUse(cost_usd=1.0), StopCause.COST),
        (Budget(tokens=100), BudgetUse(tokens=100), StopCause.COST),
        (Budget(), BudgetUse(evaluations=8, traffic_bound_share=0.96), None),
        (Budget(), BudgetUse(evaluations=8, traffic_bound_share=0.97), _AT_BOUND),
        (Budget(), BudgetUse(evaluations=7, traffic_bound_share=1.0), None),
        (Budget(stop_at=0.8), BudgetUse(evaluations=9, traffic_bound_share=0.8), _AT_BOUND),
        (Budget(stop_at=NEVER), BudgetUse(evaluations=99, traffic_bound_share=1.2), None),
    ],
)
def test_cap_ends_the_run(budget: Budget, spent: BudgetUse, cause: StopCause | None) -> None:
    assert cause == stop_cause(budget, spent)


def test_resumed_run_keeps_what_is_not_told() -> None:
    """Evaluations and minutes both say how long; caps stay. Minutes count on, as they were left."""
    kept = Budget(evaluations=40, minutes=30, cost_usd=2.0, tokens=9).left_after(600.0)
    assert Budget().over(kept) == Budget(evaluations=40, minutes=20.0, cost_usd=2.0, tokens=9)
    assert Budget(minutes=5).over(kept) == Budget(minutes=5, cost_usd=2.0, tokens=9)
    assert Budget(cost_usd=7.0).over(kept).cost_usd == 7.0
    assert Budget(minutes=1).left_after(90.0).minutes == 0.0


def test_reserve_counts_as_spent_time() -> None:
    assert (
        stop_cause(Budget(minutes=1), BudgetUse(seconds=50), reserve_seconds=10)
        is StopCause.MINUTES
    )


def test_a_pause_takes_none_of_the_minutes() -> None:
    """Neither here nor of whoever goes on with the run."""
    run = Run(
        spec=run_spec(),
        state=RunState.RUNNING,
        created_unix_s=0.0,
        evaluation_count=0,
        best_speedup=None,
        cost_usd=0.0,
    )
    meter = BudgetMeter(Budget(minutes=1.0), run)
    meter.pause()
    before = meter.left()
    assert meter.left() == before
    meter.go_on()
    assert meter.left() != before
