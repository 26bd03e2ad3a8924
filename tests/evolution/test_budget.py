"""Each cap ends a run, and only when it is reached."""

import pytest

from kernel_foundry.budget import Budget, Spent, StopCause, exceeded


@pytest.mark.parametrize(
    ("budget", "spent", "cause"),
    [
        (Budget(evaluations=5), Spent(evaluations=4), None),
        (Budget(evaluations=5), Spent(evaluations=5), StopCause.EVALUATIONS),
        (Budget(minutes=1), Spent(seconds=59), None),
        (Budget(minutes=1), Spent(seconds=60), StopCause.MINUTES),
        (Budget(cost_usd=1.0), Spent(cost_usd=0.99), None),
        (Budget(cost_usd=1.0), Spent(cost_usd=1.0), StopCause.COST),
        (Budget(tokens=100), Spent(tokens=100), StopCause.COST),
        (Budget(), Spent(best_light_share=0.94), None),
        (Budget(), Spent(best_light_share=0.95), StopCause.SPEED_OF_LIGHT),
    ],
)
def test_cap_ends_the_run(budget: Budget, spent: Spent, cause: StopCause | None) -> None:
    assert cause == exceeded(budget, spent)


def test_reserve_counts_as_spent_time() -> None:
    assert exceeded(Budget(minutes=1), Spent(seconds=50), reserve_seconds=10) is StopCause.MINUTES
