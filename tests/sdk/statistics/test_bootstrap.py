"""Intervals hold what they should about as often as they say."""

import numpy as np
import pytest

from kernel_foundry.sdk.statistics.bootstrap import Bootstrap, share


def test_interval_of_the_mean_holds_the_true_mean_in_95_of_100_cases() -> None:
    rng = np.random.default_rng(4)
    bootstrap = Bootstrap(100)
    held = 0
    for _ in range(400):
        found = bootstrap.mean(rng.exponential(10.0, size=100))
        held += found.low <= 10.0 <= found.high
    assert 0.90 <= held / 400 <= 0.98


def test_interval_of_the_median_holds_the_true_median() -> None:
    rng = np.random.default_rng(5)
    bootstrap = Bootstrap(100)
    held = 0
    for _ in range(100):
        found = bootstrap.median(rng.normal(3.0, 1.0, size=100))
        held += found.low <= 3.0 <= found.high
    assert held >= 88


def test_curve_is_the_mean_point_by_point() -> None:
    values = np.random.default_rng(6).random((30, 7))
    mean, low, high = Bootstrap(30).mean_curve(values)
    assert mean == pytest.approx(values.mean(axis=0))
    assert (low <= mean).all()
    assert (mean <= high).all()


def test_constant_values_have_no_width_and_a_difference_of_zero_is_not_excluded() -> None:
    found = Bootstrap(10).mean(np.zeros(10))
    assert (found.value, found.low, found.high) == (0.0, 0.0, 0.0)
    assert not found.excludes_zero


def test_share_has_an_interval_at_its_ends_too() -> None:
    assert share(0, 100).low == 0.0
    assert share(0, 100).high == pytest.approx(0.037, abs=0.001)
    assert share(100, 100).low == pytest.approx(0.963, abs=0.001)
    assert share(50, 100).low == pytest.approx(0.404, abs=0.001)
