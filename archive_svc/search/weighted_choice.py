"""Random choices by weight, as numpy's `choice` makes them, without its checks, which cost more."""

import numpy as np


def choose(rng: np.random.Generator, weights: np.ndarray) -> int:
    """Return an index, likelier the larger its weight.

    Args:
        rng: One number is taken from it.
        weights: `(option,)`; none is negative and one at least is positive.
    """
    return int(_indices(weights, rng.random()))


def choose_distinct(rng: np.random.Generator, weights: np.ndarray, count: int) -> list[int]:
    """Return `count` different indices, the first choice first; arguments as in `choose`."""
    left = weights.copy()
    drawn: list[int] = []
    while len(drawn) < count:
        left[drawn] = 0.0
        found = _indices(left, rng.random(count - len(drawn)))
        drawn += dict.fromkeys(found.tolist())
    return drawn


def _indices(weights: np.ndarray, numbers: float | np.ndarray) -> np.ndarray:
    """Return where `numbers` from 0 to 1 fall among the weights."""
    bounds = weights.cumsum()
    indices: np.ndarray = np.searchsorted(bounds / bounds[-1], numbers, side="right")
    return indices
