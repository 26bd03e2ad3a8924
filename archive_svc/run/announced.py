"""The verdict that a run is known by: its winner's if it has ended, else its best one's."""

from contextlib import suppress
from typing import Final

from archive_svc.store.rows import RunRow
from archive_svc.store.store import Store
from kernel_foundry.domain.archive import ArchivedEvaluation
from kernel_foundry.domain.best import MOST_FINAL, winner_of
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.domain.plain import PlainError

_MORE: Final = 4
"""Verdicts are long: the last one shows whether there is a winner, some more which one it is."""


def announced(store: Store, run: RunRow) -> Evaluation | None:
    """Return the verdict that lists of runs show; None when nothing passed or it cannot be read."""
    for known in (_winner, _best):
        # A verdict that cannot be read hides neither its run nor the others.
        with suppress(PlainError):
            if (verdict := known(store, run)) is not None:
                return verdict
    return None


def _winner(store: Store, run: RunRow) -> Evaluation | None:
    """The winner's verdict, if the run has ended."""
    newest: list[ArchivedEvaluation] = []
    first, size = run.evaluation_count, 1
    while first > 0 and len(newest) < MOST_FINAL and all(e.evaluation.is_final for e in newest):
        size = min(size, first, MOST_FINAL - len(newest))
        newest = [*store.evaluations(run.id, first - size, size), *newest]
        first, size = first - size, _MORE
    found = winner_of(newest)
    return None if found is None else found.evaluation


def _best(store: Store, run: RunRow) -> Evaluation | None:
    if run.best_sequence is None:
        return None
    found = store.evaluations_at(run.id, [run.best_sequence]).get(run.best_sequence)
    return None if found is None else found.evaluation
