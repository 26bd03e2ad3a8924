"""The median and its interval."""

import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_foundry.domain.median import median_interval


@given(st.lists(st.floats(min_value=1.0, max_value=1e12), min_size=1, max_size=200))
def test_the_interval_holds_the_median(samples):
    """Bounds are samples, in order, around the median; of few they lie beyond all samples."""
    median, (low, high) = median_interval(tuple(samples))
    assert median == statistics.median(samples)
    assert low <= median <= high
    if len(samples) >= 6:
        assert low in samples
        assert high in samples
    else:
        assert min(samples) / 10 <= low <= min(samples)
        assert max(samples) <= high <= 10 * max(samples)


def test_one_sample_is_known_to_a_factor_of_ten_only():
    assert median_interval((5.0,)) == (5.0, (0.5, 50.0))


@pytest.mark.parametrize("count", [2, 3, 4, 5])
def test_few_samples_have_intervals_that_cover_as_often_as_they_say(count):
    """Of normal samples at least 94 of 100, whose true median is their mean."""
    source = random.Random(7)
    hits = 0
    for _ in range(2000):
        low, high = median_interval(tuple(source.gauss(100.0, 5.0) for _ in range(count)))[1]
        hits += low <= 100.0 <= high
    assert hits >= 1880


def test_the_interval_covers_the_true_median_as_often_as_it_says():
    """About 95 of 100 intervals of exponential samples hold the true median."""
    source = random.Random(7)
    hits = 0
    for _ in range(1000):
        samples = tuple(source.expovariate(1.0) for _ in range(50))
        low, high = median_interval(samples)[1]
        hits += low <= 0.6931 <= high
    assert 930 <= hits <= 985
