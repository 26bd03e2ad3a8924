"""The best of a run: one definition for archive, loop, commands, reports and SDK.

Each candidate counts with its newest verdict, so that a lucky time does not outlive its second
measurement, and only if that passed. The best is the candidate with the highest fitness; of equals
the one that was archived first. Fitness takes a time at its upper bound, so that no other time is
certainly shorter; it includes the time of `prepare` if that does more than layout; and a suspect
verdict has less than every trusted one.

The winner of a run that has ended is the best of the candidates that were measured again at its
end, since the best of a whole search owes something to luck.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from typing import Final

from kernel_foundry.domain.archive import ArchivedEvaluation, Elite

Rank = tuple[float, int]


def rank(fitness: float, sequence: int) -> Rank:
    """Return a sort key by which the best comes first."""
    return -fitness, sequence


def best_of(archived: Iterable[ArchivedEvaluation]) -> ArchivedEvaluation | None:
    """Return the best of a run's evaluations, which are in order; None when nothing passed."""
    best = None
    for so_far in best_so_far(archived):
        best = so_far
    return best


def best_so_far(archived: Iterable[ArchivedEvaluation]) -> Iterator[ArchivedEvaluation | None]:
    """Yield, after each evaluation, the best one so far."""
    seen: dict[int, ArchivedEvaluation] = {}
    leader = Leader()
    for one in archived:
        seen[one.sequence] = one
        best = leader.add(one)
        yield None if best is None else seen[best]


class Leader:
    """Tracks the best evaluation of a run as they come; keeps ranks, not verdicts."""

    def __init__(self) -> None:
        self._newest: dict[str, Rank | None] = {}
        """By digest; None for one that did not pass."""
        self._digest = ""
        self._best: Rank | None = None

    def add(self, one: ArchivedEvaluation) -> int | None:
        """Return the sequence of the best one now; None before anything passed.

        Args:
            one: The run's next evaluation.
        """
        digest = one.candidate.digest
        ranked = _rank(one) if one.evaluation.passed else None
        self._newest[digest] = ranked
        if self._best is not None and digest == self._digest:
            # Measured again: any other may lead now.
            passed = ((r, d) for d, r in self._newest.items() if r is not None)
            self._best, self._digest = min(passed, default=(None, ""))
        elif ranked is not None and (self._best is None or ranked < self._best):
            self._best, self._digest = ranked, digest
        return None if self._best is None else self._best[1]


MOST_FINAL: Final = 64
"""Newest evaluations of a run among which its winner is looked for."""


def winner_of(archived: Sequence[ArchivedEvaluation]) -> Elite | None:
    """Return the winner of a run; None for one that has not ended, or in which nothing passed.

    Args:
        archived: The newest `MOST_FINAL` of the run, in order.
    """
    newest_first = takewhile(lambda one: one.evaluation.is_final, reversed(archived))
    best = best_of(reversed(tuple(newest_first)))
    if best is None or best.evaluation.measures is None:
        return None
    return Elite(
        candidate=best.candidate,
        evaluation=best.evaluation,
        fitness=best.evaluation.fitness,
        measures=best.evaluation.measures,
        island=best.island,
    )


def _rank(archived: ArchivedEvaluation) -> Rank:
    return rank(archived.evaluation.fitness, archived.sequence)
