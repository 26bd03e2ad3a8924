"""What the search needs to know of a told evaluation: numbers and digests, no texts.

Knows nothing of where they come from: a store, or a recorded landscape.
"""

from dataclasses import dataclass

Cell = tuple[int, int, int]
"""(memory, algorithm, synchronization), each 0 to 3."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldNumbers:
    """The numbers of one told evaluation."""

    sequence: int
    """1-based position among the run's told evaluations."""
    digest: str
    """Of the candidate."""
    operator: str
    """Value of an `Operator`."""
    parent: str
    """Digest of the first parent; "" for a seed."""
    outcome: str
    """Value of an `EvaluationOutcome`."""
    passed: bool
    """Whether it is correct and timed."""
    fitness: float
    """At the upper bound of the time: what it is worth for certain, from 0."""
    cell: Cell | None
    """Its measures; of a failed one as far as they are known."""
    speedup: float | None
    has_parameters: bool
    """Whether its plan has parameters to tune."""
    island: str
    """Name of the island it belongs to."""
    selection: int | None
    """Number of the selection that it answers; None for what was not asked for."""
