"""The median and its interval."""

import random
import statistics

from hypothesis import given
from hypothesis import strategies as st

from kernel_foundry.domain.median import median_interval


@given(st.lists(st.floats(min_value=1.0, max_value=1e12), min_size=1, max_size=200))
def test_the_interval_holds_the_median(samples):
    """Bounds are samples, in order, around the median."""
    median, (low, high) = median_interval(tuple(samples))
    assert median == statistics.median(samples)
    assert low in samples
    assert high in samples
    assert low <= median <= high


def test_the_interval_covers_the_true_median_as_often_as_it_says():
    """About 95 of 100 intervals of exponential samples hold the true median."""
    source = random.Random(7)
    hits = 0
    for _ in range(1000):
        samples = tuple(source.expovariate(1.0) for _ in range(50))
        low, high = median_interval(samples)[1]
        hits += low <= 0.6931 <= high
    assert 930 <= hits <= 985
