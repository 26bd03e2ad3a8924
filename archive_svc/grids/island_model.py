"""The islands' roles, how selections are spread over them, and when they exchange elites.

Roles, sizes and rates are data. `island.py` has the state of an island,
`archive_svc/search/run_archive.py` migration itself.
Source: the island model of evolutionary computation; roles as in docs/design.md §7.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np


@dataclass(frozen=True, slots=True, kw_only=True)
class IslandRole:
    """An island's name and emphasis."""

    name: str
    """Also the name of the expert that writes its candidates."""
    emphasis: tuple[float, float, float]
    """Weight of the direction along (memory, algorithm, synchronization)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IslandModel:
    """The islands of a run, and how they exchange elites."""

    islands: tuple[IslandRole, ...]
    founding: int
    """Number of founders: the first candidates that pass, which every island gets, so that all
    islands begin with the same population."""
    least_stagnation: int
    """Evaluations without a better best after which an island gets migrants, in a young run."""
    stagnation: int
    """The same number in a long run. Between the two it is a tenth of the run's evaluations."""
    migrants: int
    """Elites of the best other island that are copied to a stagnating one."""
    even_share: float
    """Share of selections that are spread evenly over the islands; the others go to those with the
    best elites."""

    def patience(self, evaluations: int) -> int:
        """Return after how many evaluations without a better best an island gets migrants.

        Args:
            evaluations: Of the run so far.
        """
        return max(self.least_stagnation, min(self.stagnation, evaluations // 10))


ISLANDS: Final = IslandModel(
    islands=(
        IslandRole(name="fusion", emphasis=(0.7, 1.0, 0.7)),
        IslandRole(name="memory", emphasis=(1.0, 0.7, 0.7)),
        IslandRole(name="parallelism", emphasis=(0.7, 0.7, 1.0)),
        IslandRole(name="compute", emphasis=(0.9, 1.0, 0.5)),
    ),
    founding=8,
    least_stagnation=3,
    stagnation=8,
    migrants=3,
    even_share=0.25,
)


ONE_ISLAND: Final = replace(
    ISLANDS, islands=(IslandRole(name="general", emphasis=(1.0, 1.0, 1.0)),)
)
"""The single grid of a run without islands."""


def island_shares(model: IslandModel, best: Sequence[float], *, temperature: float) -> np.ndarray:
    """Return the probability of each island to make the next selection.

    Args:
        model: The islands.
        best: Fitness of each island's best elite; 0 for an island without any.
        temperature: Of the softmax over `best`.

    Returns:
        `(island,)` float64 that sums to 1.
    """
    scores = np.asarray(best) / temperature
    soft = np.exp(scores - scores.max())
    shares: np.ndarray = (1 - model.even_share) * soft / soft.sum() + model.even_share / len(best)
    return shares
