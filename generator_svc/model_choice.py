"""Which model is asked: for now each with the same chance.

The seam for learned weights: whatever learns them implements `ModelChooser`.
"""

import random
from typing import Protocol

from kernel_foundry.domain.request import ProposalRequest


class ModelChooser(Protocol):
    """Chooses a model for a proposal."""

    def choose(self, request: ProposalRequest, models: tuple[str, ...]) -> str:
        """Return one of `models`; the same request gets the same answer."""
        ...


class UniformChooser:
    """Chooses each model with the same probability, decided by the request's seed."""

    def choose(self, request: ProposalRequest, models: tuple[str, ...]) -> str:
        """See `ModelChooser.choose`."""
        key = f"{request.run}/{request.seed}/{request.selection.sequence}"
        return random.Random(key).choice(models)
