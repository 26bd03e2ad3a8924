"""Chooses the parts of one proposal: operator, parent, inspirations and target cell.

The strategies' parts are in `selection.py`; which island is next, and when seeds are due, is in
`archive_svc/search/run_archive.py`.
"""

from collections.abc import Sequence, Set

import numpy as np

from archive_svc.grids.grid import Entry
from archive_svc.grids.island import Island
from archive_svc.search.selection import Choice, SelectionContext, inspirations
from archive_svc.search.strategies import Strategy
from archive_svc.search.weighted_choice import choose
from kernel_foundry.domain import mechanisms
from kernel_foundry.domain.candidate import Operator


def choose_operator(
    strategy: Strategy,
    island: Island,
    elites: Sequence[Entry],
    rng: np.random.Generator,
    *,
    has_partner: bool,
    repairable: str | None,
    seed_is_due: bool,
    without: Set[str],
) -> Operator:
    """Return an operator among those that are possible; SEED if there is no other.

    Args:
        strategy: Has the operators' weights.
        island: Where the proposal goes.
        elites: The parents there are.
        rng: Used only if there is a choice.
        has_partner: Whether there is an elite to combine a parent with.
        repairable: Digest of a failure to repair.
        seed_is_due: Whether another seed is possible beside them.
        without: Mechanisms that are switched off.
    """
    weights = strategy.operators
    templatisable = island.templatisable
    possible = [
        operator
        for operator, is_possible in (
            (Operator.MUTATE, len(elites) > 0),
            (Operator.COMBINE, bool(elites) and has_partner),
            (Operator.REPAIR, repairable is not None),
            (Operator.TEMPLATISE, templatisable is not None and templatisable in elites),
        )
        if is_possible and weights[operator] > 0 and operator.value not in without
    ]
    if not possible:
        return Operator.SEED
    if seed_is_due:
        possible.insert(0, Operator.SEED)
    return possible[choose(rng, np.array([weights[operator] for operator in possible]))]


def choose_parents(
    strategy: Strategy,
    operator: Operator,
    island: Island,
    context: SelectionContext,
    rng: np.random.Generator,
    *,
    repairable: str | None,
    without: Set[str],
) -> Choice:
    """Return the choice of a proposal whose operator is decided.

    Args:
        strategy: Chooses parents and target cells.
        operator: Of the proposal.
        island: Where it goes.
        context: What the strategy sees of the island; it has elites, but for SEED and REPAIR.
        rng: For every random choice.
        repairable: Digest of the failure that a repair is made of.
        without: Mechanisms that are switched off.
    """
    if operator is Operator.SEED:
        return Choice(island=island.name, operator=operator)
    if operator is Operator.REPAIR:
        return Choice(island=island.name, operator=operator, parent=repairable)
    parent = island.templatisable if operator is Operator.TEMPLATISE else None
    if parent is None:
        parent = context.elites[choose(rng, strategy.parents(context))]
    shown = inspirations(context, parent, rng)
    if mechanisms.INSPIRATIONS in without:  # but for the partner of a combination
        shown = shown[: operator is Operator.COMBINE]
    # Templatise gets no target, so no missed target is counted.
    is_aimed = mechanisms.DIRECTION not in without and operator is not Operator.TEMPLATISE
    return Choice(
        island=island.name,
        operator=operator,
        parent=parent.digest,
        inspirations=tuple(entry.digest for entry in shown),
        target=strategy.aim(context, parent, shown, rng) if is_aimed else None,
    )
