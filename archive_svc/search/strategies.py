"""The search strategies by name: how parents, directions and operators are chosen.

The functions are in `selection.py`, ablations in `landscapes/strategies.py`. Strategies share
seeds, islands, inspirations and everything else, so that they differ in what their names say.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from archive_svc.search.gradient import GradientWeights
from archive_svc.search.selection import (
    Aim,
    Parents,
    curiosity_parents,
    fitness_parents,
    gradient_aim,
    gradient_parents,
    no_aim,
    uniform_parents,
)
from kernel_foundry.domain.candidate import Operator

_EVOLVE: Final[Mapping[Operator, float]] = {
    Operator.SEED: 0.1,
    Operator.MUTATE: 0.55,
    Operator.COMBINE: 0.2,
    Operator.REPAIR: 0.1,
    Operator.TEMPLATISE: 0.15,
}

_SEED_ONLY: Final[Mapping[Operator, float]] = {
    **dict.fromkeys(_EVOLVE, 0.0),
    Operator.SEED: 1.0,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """How a run searches."""

    parents: Parents
    aim: Aim
    operators: Mapping[Operator, float]
    """Weights of those that are possible."""
    gradient: GradientWeights = field(default_factory=GradientWeights)
    has_finer_inspirations: bool = False
    """Whether inspirations are elites of the finer map (`grids/finer_map.py`)."""


STRATEGIES: Final[Mapping[str, Strategy]] = {
    "gradient": Strategy(parents=gradient_parents, aim=gradient_aim, operators=_EVOLVE),
    "fitness": Strategy(parents=fitness_parents, aim=no_aim, operators=_EVOLVE),
    "sliding": Strategy(
        parents=fitness_parents, aim=no_aim, operators=_EVOLVE, has_finer_inspirations=True
    ),
    "curiosity": Strategy(parents=curiosity_parents, aim=no_aim, operators=_EVOLVE),
    "uniform": Strategy(parents=uniform_parents, aim=no_aim, operators=_EVOLVE),
    "best_of_n": Strategy(parents=uniform_parents, aim=no_aim, operators=_SEED_ONLY),
}
