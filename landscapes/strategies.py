"""The strategies of real runs, and ablations of `gradient` for landscapes alone."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from archive_svc.search import strategies
from archive_svc.search.gradient import GradientWeights
from archive_svc.search.selection import no_aim
from archive_svc.search.strategies import Strategy

_GRADIENT: Final = strategies.STRATEGIES["gradient"]

STRATEGIES: Final[Mapping[str, Strategy]] = {
    **strategies.STRATEGIES,
    # The gradient without one of its parts, and without what it is used for.
    "gradient-no-f": replace(_GRADIENT, gradient=GradientWeights(fitness=0.0)),
    "gradient-no-r": replace(_GRADIENT, gradient=GradientWeights(rate=0.0)),
    "gradient-no-e": replace(_GRADIENT, gradient=GradientWeights(exploration=0.0)),
    "gradient-no-aim": replace(_GRADIENT, aim=no_aim),
}
