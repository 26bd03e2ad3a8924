"""How close each operator's children come to the best: what is worth doing more.

Knows nothing of where parents stand.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from kernel_foundry.domain.candidate import Operator

DECAY: Final = 0.99
"""What an observation's weight shrinks to with each told evaluation."""

PRIOR: Final = 2.0
"""Observations of the mean of all operators that each one starts with."""

REWARD_WIDTH: Final = 2.0
"""Distance to the best, in temperatures of selection, at which the reward is 1/e."""

LEAST_SHARE: Final = 0.02
"""Of every operator that is possible, so that it can show when its time has come."""


def reward(fitness: float, best: float, *, temperature: float) -> float:
    """Return how close a correct candidate came to the best one before it, from 0 to 1."""
    return math.exp(min(fitness - best, 0.0) / (REWARD_WIDTH * temperature))


class OperatorCredit:
    """Weighted means of rewards, by operator."""

    def __init__(self) -> None:
        self._count = dict.fromkeys(Operator, 0.0)
        self._reward = dict.fromkeys(Operator, 0.0)

    def add(self, operator: Operator, reward: float) -> None:
        """Note a told evaluation.

        Args:
            operator: That it was made by.
            reward: From 0 to 1: 1 for one as good as the best of its island, or better.
        """
        for sums in (self._count, self._reward):
            for key in sums:
                sums[key] *= DECAY
        self._count[operator] += 1.0
        self._reward[operator] += reward

    def shares(
        self, weights: Mapping[Operator, float], possible: Sequence[Operator], *, adapts: bool
    ) -> np.ndarray:
        """Return the probability of each operator of `possible`.

        Args:
            weights: Before anything is known.
            possible: Operators that have what they need.
            adapts: Whether rewards count.

        Returns:
            `(operator,)` float64 that sums to 1.
        """
        shares = np.array([weights[o] for o in possible])
        if adapts:
            mean = (sum(self._reward.values()) + 0.5) / (sum(self._count.values()) + 1.0)
            shares = shares * [
                (self._reward[o] + PRIOR * mean) / (self._count[o] + PRIOR) for o in possible
            ]
        shares = np.maximum(shares / shares.sum(), LEAST_SHARE)
        normalised: np.ndarray = shares / shares.sum()
        return normalised
