"""Elites with their texts, parsed: a bounded cache before the store.

A search goes on from the same few elites, whose texts are long to read and to parse.
"""

from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

from archive_svc.store.store import Store
from kernel_foundry.domain.archive import ArchivedEvaluation, Elite
from kernel_foundry.domain.measures import Measures

KEPT: Final = 512
"""Elites kept, the ones used last; those of a full grid of every island are half of that."""

_ORIGIN: Final = Measures(memory=0, algorithm=0, synchronization=0)


class EliteCache:
    """Evaluations of runs, as elites; used by one thread."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._elites: OrderedDict[tuple[int, int], Elite] = OrderedDict()

    def at(self, run_id: int, sequences: Iterable[int]) -> list[Elite]:
        """Return a run's evaluations at `sequences`, in their order."""
        wanted = list(sequences)
        missing = [s for s in wanted if (run_id, s) not in self._elites]
        found: dict[int, Elite] = {}
        if missing:
            archived = self._store.evaluations_at(run_id, missing)
            found = {sequence: elite_of(archived[sequence]) for sequence in missing}
        elites = [found.get(s) or self._elites[run_id, s] for s in wanted]
        for sequence, elite in zip(wanted, elites, strict=True):
            self.keep(run_id, sequence, elite)
        return elites

    def keep(self, run_id: int, sequence: int, elite: Elite) -> None:
        """Keep a run's evaluation at `sequence` as the one used last."""
        self._elites[run_id, sequence] = elite
        self._elites.move_to_end((run_id, sequence))
        while len(self._elites) > KEPT:
            self._elites.popitem(last=False)


def elite_of(archived: ArchivedEvaluation) -> Elite:
    """Return an evaluation as an elite, or as the failed parent of a repair."""
    evaluation = archived.evaluation
    return Elite(
        candidate=archived.candidate,
        evaluation=evaluation,
        fitness=evaluation.fitness,
        # A failed parent of a repair may have no measures; it then stands at the origin.
        measures=evaluation.measures or _ORIGIN,
        island=archived.island,
    )
