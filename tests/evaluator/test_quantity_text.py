"""Uncertainty as people read it: never ±0 %, never with an exponent."""

import pytest

from kernel_foundry.quantity_text import uncertainty_text


@pytest.mark.parametrize(
    ("interval", "text"),
    [
        ((0.99, 1.0, 1.006), "±0.8 %"),
        ((0.7, 1.0, 1.4), "±35 %"),
        ((1.0, 1.0, 1.0), "±<0.1 %"),
        ((0.0, 1.0, 1.995), "±100 %"),
        ((0.1, 1.0, 12.1), "±>100 %"),
        ((0.0, 0.0, 5.0), "±>100 %"),
        ((1.0, 1.0, float("nan")), "±>100 %"),
    ],
)
def test_half_an_interval(interval: tuple[float, float, float], text: str) -> None:
    assert uncertainty_text(*interval) == text
