"""Speed-ups: their intervals, and what is said where an interval leaves the gain open."""

import math
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_foundry.domain.evaluation import (
    Baseline,
    Timing,
    WorkloadResult,
    speedup_interval_of,
    speedup_of,
)
from kernel_foundry.domain.median import median_interval
from kernel_foundry.sdk.verdict_text import headline_text
from tests.domain_values import timing_of

_TIMES = st.lists(st.floats(min_value=1.0, max_value=1e9), min_size=1, max_size=20)


def _timing(samples_ns: list[float]) -> Timing:
    median_ns, interval_ns = median_interval(tuple(samples_ns))
    return timing_of(median_ns, samples_ns=tuple(samples_ns), ci95_ns=interval_ns)


def _result(candidate: list[float], *baselines: list[float]) -> WorkloadResult:
    timed = (
        Baseline(name="eager" if i == 0 else f"other {i}", timing=_timing(b))
        for i, b in enumerate(baselines)
    )
    return WorkloadResult(workload="w", timing=_timing(candidate), baselines=tuple(timed))


@given(st.lists(st.tuples(_TIMES, _TIMES, _TIMES), min_size=1, max_size=3))
def test_the_interval_holds_the_speed_up(samples) -> None:
    """Also where another baseline than the fastest may be the fastest in truth."""
    results = tuple(_result(*each) for each in samples)
    value, interval = speedup_of(results), speedup_interval_of(results)
    assert value is not None
    assert interval is not None
    assert interval[0] <= value <= interval[1]


@given(
    st.lists(st.tuples(_TIMES, _TIMES), min_size=1, max_size=4),
    st.lists(st.integers(1, 3), min_size=4, max_size=4),
)
def test_a_weight_counts_like_so_many_workloads(samples, weights) -> None:
    """A workload of weight 2 is worth as much as two workloads with its times."""
    results = [_result(*each) for each in samples]
    weighted = tuple(replace(r, weight=float(w)) for r, w in zip(results, weights, strict=False))
    listed = tuple(r for r, w in zip(results, weights, strict=False) for _ in range(w))
    assert speedup_of(weighted) == pytest.approx(speedup_of(listed))
    value, (low, high) = speedup_of(weighted) or 0.0, speedup_interval_of(weighted) or (0.0, 0.0)
    assert low <= value * (1 + 1e-12)
    assert value * (1 - 1e-12) <= high


def test_the_interval_covers_the_true_speed_up_as_often_as_it_says() -> None:
    """Skewed times of two workloads: at least about 95 of 100 intervals hold what is true."""
    source = random.Random(3)

    def samples(true_median: float) -> list[float]:
        return [
            true_median * math.exp(source.expovariate(4.0) - math.log(2) / 4) for _ in range(40)
        ]

    hits = 0
    for _ in range(500):
        results = (
            _result(samples(2.0), samples(6.0)),
            _result(samples(5.0), samples(10.0)),
        )
        low, high = speedup_interval_of(results) or (0.0, 0.0)
        hits += low <= math.sqrt(6.0) <= high
    assert 465 <= hits <= 495


def test_held_out_workloads_count_for_nothing() -> None:
    right = WorkloadResult(workload="held out", held_out=True)
    assert speedup_of((_result([2.0] * 6, [4.0] * 6), right)) == pytest.approx(2.0)
    interval = speedup_interval_of((_result([2.0] * 6, [4.0] * 6), right))
    assert interval == (pytest.approx(2.0), pytest.approx(2.0))


def test_without_a_baseline_there_is_no_speed_up() -> None:
    results = (_result([2.0] * 6, [4.0] * 6), _result([2.0]))
    assert speedup_of(results) is None
    assert speedup_interval_of(results) is None
    only_eager = _result([2.0] * 6, [4.0] * 6, [3.0] * 6)
    assert speedup_interval_of((only_eager,), "eager") == (pytest.approx(2.0),) * 2


@pytest.mark.parametrize(
    ("value", "interval", "text"),
    [
        (1.83, (1.79, 1.88), "1.83× (1.79–1.88)"),
        (1.02, (0.97, 1.08), "no clear gain: 1.02× (0.97–1.08)"),
        (0.8, (0.7, 0.9), "0.80× (0.70–0.90): slower"),
        (4.0, (0.9, 17.0), "no clear gain: 4.00× (0.90–17.00)"),
        (4.0, (1.2, 17.0), "4.00× (1.20–17.00): no more than 1.20× is sure"),
        (None, None, "–"),
    ],
)
def test_a_headline_says_whether_there_is_a_gain(
    value: float | None, interval: tuple[float, float] | None, text: str
) -> None:
    assert headline_text(value, interval) == text
