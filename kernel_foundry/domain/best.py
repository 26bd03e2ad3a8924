"""The best of a run: one definition for archive, loop, commands, reports and SDK.

Of each candidate the newest verdict counts, so that a lucky time does not outlive its second
measurement, and only if it passed. The best is the one with the highest fitness: that is counted
at the upper bound of its time, so no other's time is for certain below its own; with the time of
`prepare` where that does more than layout; and below every trusted one where its verdict is in
doubt. Of equals the one told first.
"""

from collections.abc import Iterable, Iterator

from kernel_foundry.domain.archive import ToldEvaluation

Rank = tuple[float, int]


def rank(fitness: float, sequence: int) -> Rank:
    """Return a sort key: the least is the best."""
    return -fitness, sequence


def best_of(told: Iterable[ToldEvaluation]) -> ToldEvaluation | None:
    """Return the best of what was told, in the order of telling; None when nothing passed."""
    best = None
    for so_far in best_so_far(told):
        best = so_far
    return best


def best_so_far(told: Iterable[ToldEvaluation]) -> Iterator[ToldEvaluation | None]:
    """Yield after each told evaluation which one is the best then."""
    newest: dict[str, ToldEvaluation] = {}
    best: ToldEvaluation | None = None
    for one in told:
        newest[one.candidate.digest] = one
        if best is not None and best.candidate.digest == one.candidate.digest:
            # Measured again: any other may lead now.
            best = min((t for t in newest.values() if t.evaluation.passed), key=_rank, default=None)
        elif one.evaluation.passed and (best is None or _rank(one) < _rank(best)):
            best = one
        yield best


def _rank(told: ToldEvaluation) -> Rank:
    return rank(told.evaluation.fitness, told.sequence)
