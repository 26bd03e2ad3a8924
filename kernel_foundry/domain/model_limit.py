"""The limits of models, which a generator reports before anything is spent on a task."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelLimit:
    """A model that can propose nothing at all for a task."""

    model: str
    """As in `ProposalRequest.models`."""
    missing: str
    """Operators that it cannot do, such as "aten.group_norm"."""

    @property
    def text(self) -> str:
        """The limit as a clause: "recipes cannot do aten.group_norm"."""
        return f"{self.model} cannot do {self.missing}"


def limits_text(limits: tuple[ModelLimit, ...]) -> str:
    """Return the message for a task that no model can do, with the way out."""
    return f"{'; '.join(limit.text for limit in limits)}: give --model, or write a kernel"
