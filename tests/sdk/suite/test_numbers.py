"""The field's numbers keep the rules of their definitions."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_foundry.sdk.suite.numbers.distribution import speedup_counts
from kernel_foundry.sdk.suite.numbers.fast_p import THRESHOLDS, fast_p, hits
from kernel_foundry.sdk.suite.numbers.sol_score import sol_score
from kernel_foundry.sdk.suite.numbers.speedup_change import (
    MeasuredSpeedup,
    mean_speedup,
    speedup_change,
    t95,
)
from kernel_foundry.sdk.suite.numbers.typical_speedup import geometric_mean, median
from kernel_foundry.sdk.suite.numbers.win import win

SPEEDUPS = st.floats(0.05, 20.0)
RUNS = st.lists(st.none() | SPEEDUPS, min_size=1, max_size=3)
SUITES = st.lists(RUNS, min_size=1, max_size=12)
ONCE = st.lists(st.none() | SPEEDUPS, min_size=1, max_size=30)


@given(ONCE)
def test_fast_p_is_kernelbenchs_with_one_run_of_each_task(speedups: list[float | None]) -> None:
    correct = np.array([one is not None for one in speedups])
    faster = np.array([one or 0.0 for one in speedups])
    for p in THRESHOLDS:
        found = fast_p([[one] for one in speedups], p)
        assert found.value == pytest.approx(np.sum(correct & (faster > p)) / len(speedups))
        assert 0 <= found.low <= found.value <= found.high <= 1


@given(SUITES)
def test_fast_p_falls_with_p_and_a_task_that_is_not_solved_lowers_it(
    tasks: list[list[float | None]],
) -> None:
    values = [fast_p(tasks, p).value for p in THRESHOLDS]
    assert values == sorted(values, reverse=True)
    assert fast_p([*tasks, [None]], 0.0).value <= values[0]


@given(ONCE)
def test_win_is_fast_p_of_tasks_with_one_workload(speedups: list[float | None]) -> None:
    for p in THRESHOLDS:
        found, of_tasks = win([[[one]] for one in speedups], p), fast_p([[x] for x in speedups], p)
        bounds = (of_tasks.value, of_tasks.low, of_tasks.high)
        assert (found.value, found.low, found.high) == pytest.approx(bounds)


@given(st.lists(st.lists(st.none() | SPEEDUPS, min_size=1, max_size=5), min_size=1, max_size=9))
def test_win_is_a_share_of_all_workloads(tasks: list[list[float | None]]) -> None:
    every = np.array([one or 0.0 for workloads in tasks for one in workloads])
    for p in THRESHOLDS:
        found = win([[workloads] for workloads in tasks], p)
        assert found.value == pytest.approx(np.mean(every > p))
        assert 0 <= found.low <= found.value <= found.high <= 1


def test_workloads_of_one_task_are_one_draw() -> None:
    alone, many = win([[[2.0]]], 1.0), win([[[2.0] * 48]], 1.0)
    assert (many.low, many.high) == pytest.approx((alone.low, alone.high))
    repeated = win([[[2.0, 0.5], [None, None]], [[2.0, 2.0], [2.0, 2.0]]], 1.0)
    assert repeated.value == pytest.approx((0.5 + 0.0 + 2.0) / 4)


@settings(max_examples=25)  # each resamples some thousand times
@given(SUITES, SPEEDUPS)
def test_means_scale_with_all_speedups_and_ignore_what_is_not_solved(
    tasks: list[list[float | None]], factor: float
) -> None:
    scaled = [[one and one * factor for one in runs] for runs in tasks]
    solved = [one for runs in tasks for one in runs if one is not None]
    for of in (geometric_mean, median):
        found, larger, beside = of(tasks), of(scaled), of([*tasks, [None]])
        if found is None or larger is None:
            assert not solved
            continue
        assert found == beside
        assert larger.value == pytest.approx(found.value * factor)
        assert min(solved) <= found.value * (1 + 1e-9)
        assert found.value <= max(solved) * (1 + 1e-9)
        assert found.low <= found.value * (1 + 1e-9)
        assert found.value <= found.high * (1 + 1e-9)


@settings(max_examples=25)  # each resamples some thousand times
@given(SUITES)
def test_the_geometric_mean_of_slowdowns_is_the_inverse(tasks: list[list[float | None]]) -> None:
    slow = [[one and 1 / one for one in runs] for runs in tasks]
    found, inverse = geometric_mean(tasks), geometric_mean(slow)
    if found is not None and inverse is not None:
        assert inverse.value == pytest.approx(1 / found.value)


MEASURED = st.builds(
    lambda value, down, up: MeasuredSpeedup(value=value, low=value / down, high=value * up),
    SPEEDUPS,
    st.floats(1.0, 1.5),
    st.floats(1.0, 1.5),
)
SIDE = st.lists(MEASURED, min_size=1, max_size=4)


@given(SIDE, SIDE)
def test_a_change_the_other_way_round_is_its_inverse(
    before: list[MeasuredSpeedup], after: list[MeasuredSpeedup]
) -> None:
    forth, back = speedup_change(before, after), speedup_change(after, before)
    assert back.value == pytest.approx(1 / forth.value)
    assert back.low == pytest.approx(1 / forth.high)
    assert back.high == pytest.approx(1 / forth.low)
    assert forth.low <= forth.value <= forth.high


@given(SIDE)
def test_nothing_changes_between_a_suite_and_itself(runs: list[MeasuredSpeedup]) -> None:
    found = speedup_change(runs, runs)
    assert found.value == pytest.approx(1.0)
    assert found.low <= 1.0 + 1e-9
    assert found.high >= 1.0 - 1e-9


@given(SIDE)
def test_the_mean_of_a_tasks_runs_lies_between_them(runs: list[MeasuredSpeedup]) -> None:
    found = mean_speedup(runs)
    values = [one.value for one in runs]
    assert min(values) <= found.value * (1 + 1e-9)
    assert found.value <= max(values) * (1 + 1e-9)
    assert found.low <= found.value <= found.high


def test_intervals_over_runs_hold_the_true_change_in_95_of_100_cases() -> None:
    rng = np.random.default_rng(3)
    held = 0
    for _ in range(500):
        sides = [
            [MeasuredSpeedup(value=v, low=v, high=v) for v in np.exp(rng.normal(mean, 0.1, 4))]
            for mean in (0.0, 0.2)
        ]
        found = speedup_change(*sides)
        held += found.low <= math.exp(0.2) <= found.high
    assert 0.92 <= held / 500 <= 0.985


@given(st.lists(st.none() | st.floats(1e-3, 1e3), max_size=30))
def test_each_run_is_in_one_range_and_ranges_agree_with_fast_p(values: list[float | None]) -> None:
    counts = speedup_counts(values)
    assert sum(one.count for one in counts) == len(values)
    assert counts[0].count == values.count(None)
    for place, p in ((2, 0.5), (4, 1.0), (6, 2.0)):
        fast = sum(hits([value], p) for value in values)
        assert sum(one.count for one in counts[place:]) == fast


@given(st.floats(1.0, 1e9), st.floats(1.01, 100.0), st.floats(0.0, 1000.0))
def test_a_sol_score_is_half_at_the_baseline_and_one_at_the_bound(
    bound_ns: float, slower: float, share: float
) -> None:
    baseline_ns = slower * bound_ns
    assert sol_score(baseline_ns, baseline_ns, bound_ns) == pytest.approx(0.5)
    assert sol_score(bound_ns, baseline_ns, bound_ns) == 1.0
    found = sol_score(share * bound_ns, baseline_ns, bound_ns)
    later = sol_score((share + 1) * bound_ns, baseline_ns, bound_ns)
    assert found is not None
    assert later is not None
    assert 0.0 < later <= found <= 1.0
    assert (found == 1.0) is (share <= 1.0)


def test_a_sol_score_needs_a_baseline_above_the_bound() -> None:
    assert sol_score(10.0, 20.0, 20.0) is None
    assert sol_score(10.0, 20.0, 30.0) is None


def test_quantiles_of_students_t() -> None:
    assert t95(1.0) == 12.706
    assert t95(9.9) == 2.262
    assert t95(30.0) == pytest.approx(2.042, abs=2e-3)
    assert t95(1e9) == pytest.approx(1.96, abs=1e-3)
