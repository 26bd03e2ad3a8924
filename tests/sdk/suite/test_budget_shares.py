"""Shares of a suite's budget: never more than the whole, and nothing that is not used is lost."""

from hypothesis import given
from hypothesis import strategies as st

from kernel_foundry.sdk.suite.budget_shares import (
    is_worth_going_on,
    left_of,
    minutes_share,
    more,
    possible_gain,
    share,
    whole_share,
)

AMOUNTS = st.floats(0.01, 1e6)


@given(
    whole=AMOUNTS,
    own=st.none() | AMOUNTS,
    used_of=st.lists(st.floats(0, 1), min_size=1, max_size=30),
    at_once=st.integers(1, 4),
)
def test_runs_together_never_get_more_than_the_whole(
    whole: float, own: float | None, used_of: list[float], at_once: int
) -> None:
    used, promised = 0.0, []
    for number, part in enumerate(used_of):
        left = left_of(whole, used, sum(promised))
        given_share = share(left, own, len(used_of) - number)
        assert given_share is not None
        assert own is None or given_share <= own
        promised.append(given_share)
        assert used + sum(promised) <= whole * (1 + 1e-9)
        if len(promised) == at_once:
            used += part * promised.pop(0)


@given(whole=AMOUNTS, count=st.integers(2, 50))
def test_what_the_first_run_does_not_use_goes_to_the_others(whole: float, count: int) -> None:
    first = share(left_of(whole, 0, 0), None, count)
    after = share(left_of(whole, 0, 0), None, count - 1)
    assert first is not None
    assert after is not None
    assert after > first
    assert after * (count - 1) <= whole * (1 + 1e-9)


def test_without_a_whole_each_run_has_its_own() -> None:
    assert share(left_of(None, 5, 5), 0.5, 3) == 0.5
    assert share(None, None, 3) is None
    assert whole_share(7, None, 2) == 3
    assert whole_share(1, None, 2) == 0


@given(left=AMOUNTS, used=AMOUNTS, shares=st.lists(st.floats(0, 0.99), min_size=1, max_size=9))
def test_more_for_all_is_what_is_left_and_the_most_for_who_may_gain_most(
    left: float, used: float, shares: list[float]
) -> None:
    gains = [possible_gain(bound_share) for bound_share in shares]
    parts = [gain / sum(gains) for gain in gains]
    given = [more(left, None, first=used, used=used, part=part) or 0.0 for part in parts]
    assert sum(given) <= (used * len(shares) + left) * (1 + 1e-9)
    assert given[shares.index(min(shares))] == max(given)
    assert more(left, used, first=used, used=used, part=1.0) == used
    assert not is_worth_going_on(used, first=used, used=used)
    assert possible_gain(1.0) == possible_gain(1.2) == 0.0


@given(
    left=AMOUNTS, waiting=st.integers(1, 300), workers=st.integers(1, 8), own=st.none() | AMOUNTS
)
def test_a_run_ends_before_the_suite_does(
    left: float, waiting: int, workers: int, own: float | None
) -> None:
    minutes = minutes_share(left, own, waiting=waiting, workers=workers)
    assert minutes is not None
    assert minutes <= left
    assert minutes * waiting / workers <= left * (1 + 1e-9)
