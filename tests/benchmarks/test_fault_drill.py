"""The fault drill in its short form; the long one is a benchmark."""

from pathlib import Path
from typing import Any

import pytest

from benchmarks.fault_drill import IN_FLIGHT, drill
from kernel_foundry.sdk.loop.budget import Budget, StopCause

PATIENT_SECONDS = 6.0
"""A good answer comes in that time on a busy machine too; the few that hang cost it."""


def _assert_books_are_right(found: dict[str, Any]) -> None:
    assert found["requests_counted"] == found["requests_received"]
    assert found["requests_agree_for_each_model"]
    unknown = found["tokens_billed_for_a_call_cancelled_at_the_end"]
    assert 0 <= unknown <= found["tokens_of_the_largest_request"]
    assert (found["lost"], found["stored_twice"], found["stored_and_given_back"]) == (0, 0, 0)
    assert found["selections_without_an_end"] == 0


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-drill")
    monkeypatch.setenv("OPENAI_BASE_URL", "set by the drill, restored by this")


@pytest.mark.slow
async def test_nothing_is_lost_or_counted_twice(tmp_path: Path) -> None:
    found = await drill(
        tmp_path, 100, Budget(), outage=range(40, 125), timeout_seconds=PATIENT_SECONDS
    )
    assert (found["proposals"], found["ended_by"]) == (100, "proposals")
    assert found["calls_that_no_model_answered"] > 0
    assert 0.2 <= found["faulty_share"] <= 0.4
    assert found["retries_counted"] > 10
    _assert_books_are_right(found)


@pytest.mark.slow
@pytest.mark.parametrize(
    "budget", [Budget(tokens=300_000), Budget(cost_usd=0.2)], ids=["tokens", "usd"]
)
async def test_caps_hold_against_calls_in_flight(tmp_path: Path, budget: Budget) -> None:
    found = await drill(tmp_path, 100, budget, timeout_seconds=PATIENT_SECONDS)
    assert found["ended_by"] == StopCause.COST.value
    assert 0 < found["proposals"] < 100
    assert found["budget_used_share"] > 0.5
    assert found.get("tokens_above_cap", 0) <= 0
    assert found.get("usd_above_cap", 0.0) <= 0.0
    assert found["most_requests_in_flight"] <= IN_FLIGHT + 1
    _assert_books_are_right(found)
