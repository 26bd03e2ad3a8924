"""The result of one evaluation as the search sees it: numbers and digests, no texts."""

from dataclasses import dataclass

from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.measures import Cell

_PASSED = EvaluationOutcome.PASSED.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The part of an archived evaluation that the search needs."""

    sequence: int
    """1-based position among the run's evaluations."""
    digest: str
    """Of the candidate."""
    operator: str
    """Value of an `Operator`."""
    parent: str
    """Digest of the first parent; "" for a seed."""
    outcome: str
    """Value of an `EvaluationOutcome`."""
    fitness: float
    """At the upper bound of the time: what it is worth for certain, from 0."""
    cell: Cell | None
    """Its measures; of a failed candidate as far as they are known."""
    has_parameters: bool
    """Whether its plan has parameters to tune."""
    island: str
    """Name of the island it belongs to."""
    selection: int | None
    """Number of the selection that it answers; None when nobody asked for it."""

    features: tuple[float, ...] = ()
    """Features of `kernel_foundry.domain.launch_facts`; empty: not known."""

    @property
    def passed(self) -> bool:
        """Whether the candidate is correct and timed."""
        return self.outcome == _PASSED
