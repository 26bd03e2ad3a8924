"""Decides whether a proposal keeps the direction that the search chose, and puts it into words."""

from collections.abc import Sequence
from dataclasses import dataclass

from archive_svc.search.directions.hint import hint
from archive_svc.search.directions.opposition import is_opposed
from kernel_foundry.domain.archive import Elite
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.measures import Cell
from kernel_foundry.domain.trick import named_trick


@dataclass(frozen=True, slots=True, kw_only=True)
class Direction:
    """Where a proposal should go from its parent's cell."""

    target: Cell | None
    """None: anywhere."""
    words: str
    """How to get there; empty: nothing is to be said of it."""


def direction(
    parent: Elite | None,
    target: Cell | None,
    *,
    language: Language,
    banned_tricks: Sequence[str],
    is_pinned: bool,
) -> Direction:
    """Return the direction of a proposal.

    It is given up if a finding on the parent opposes it, or if its words name a banned trick. A
    cell that the user pinned stays the target in either case, without such words.

    Args:
        parent: What the proposal starts from; None: nothing, so there are no steps to describe.
        target: The cell that the search chose, or the pinned one; None: none.
        language: Of the kernels.
        banned_tricks: What the user does not want.
        is_pinned: Whether the user pinned the target.
    """
    if parent is None or target is None:
        return Direction(target=target, words="")
    cell = parent.measures.cell
    words = hint(language, cell, target)
    is_banned = bool(named_trick(banned_tricks, words))
    if not is_pinned and (is_banned or is_opposed(parent.evaluation.findings, cell, target)):
        return Direction(target=None, words="")
    return Direction(target=target, words="" if is_banned else words)
