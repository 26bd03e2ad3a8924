"""How often each operator led to an improvement: what is worth doing more.

Knows nothing of where parents stand.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from kernel_foundry.domain.candidate import Operator

DECAY: Final = 0.99
"""What an observation's weight shrinks to with each told evaluation."""

PRIOR: Final = 4.0
"""Observations at the mean rate of all operators that each one starts with."""

LEAST_SHARE: Final = 0.05
"""Of every operator that is possible, so that it can show when its time has come."""


class OperatorCredit:
    """Weighted counts of told evaluations and improvements, by operator."""

    def __init__(self) -> None:
        self._told = dict.fromkeys(Operator, 0.0)
        self._better = dict.fromkeys(Operator, 0.0)

    def add(self, operator: Operator, *, is_better: bool) -> None:
        """Note a told evaluation.

        Args:
            operator: That it was made by.
            is_better: Whether it is the best so far of its island.
        """
        for counts in (self._told, self._better):
            for key in counts:
                counts[key] *= DECAY
        self._told[operator] += 1.0
        self._better[operator] += float(is_better)

    def shares(
        self, weights: Mapping[Operator, float], possible: Sequence[Operator], *, adapts: bool
    ) -> np.ndarray:
        """Return the probability of each operator of `possible`.

        Args:
            weights: Before anything is known.
            possible: Operators that have what they need.
            adapts: Whether what was told counts.

        Returns:
            `(operator,)` float64 that sums to 1.
        """
        shares = np.array([weights[o] for o in possible])
        if adapts:
            mean = (sum(self._better.values()) + 1.0) / (sum(self._told.values()) + 2.0)
            rates = [(self._better[o] + PRIOR * mean) / (self._told[o] + PRIOR) for o in possible]
            shares = shares * np.array(rates) / mean
        shares = shares / shares.sum()
        shares = np.maximum(shares, LEAST_SHARE)
        normalised: np.ndarray = shares / shares.sum()
        return normalised
