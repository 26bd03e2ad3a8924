"""Which branches decide whether a block is reached: those of which some ways lead past it."""

from collections.abc import Mapping
from typing import Final

from evaluator_svc.inspector.control_flow import predecessors_of

_EXIT: Final = 0
"""Number of the end that all ways lead to; no block's."""
_MAX_VISITS: Final = 300_000
"""Most visits of blocks; a function that needs more is too tangled. Usual code needs thousands."""


def deciding_blocks(successors: Mapping[int, tuple[int, ...]]) -> dict[int, set[int]] | None:
    """Return for each block the blocks whose branch directly decides whether it is reached.

    None: the function is too tangled.

    Source: J. Ferrante, K. Ottenstein and J. Warren, The program dependence graph and its use in
    optimization (1987).
    """
    after = _PostDominators(successors).found
    if after is None:
        return None
    left = _MAX_VISITS
    found: dict[int, set[int]] = {block: set() for block in successors}
    for block, targets in successors.items():
        if len(set(targets)) < 2:
            continue
        for target in targets:
            reached = target
            while reached not in (after[block], _EXIT):
                found[reached].add(block)
                reached = after[reached]
                left -= 1
            if left < 0:
                return None
    return found


class _PostDominators:
    """For each block the next one that every way to the end goes through.

    Source: K. Cooper, T. Harvey and K. Kennedy, A simple, fast dominance algorithm (2001).

    Args:
        successors: Blocks that may follow each block.
    """

    def __init__(self, successors: Mapping[int, tuple[int, ...]]) -> None:
        ways = {block: targets or (_EXIT,) for block, targets in successors.items()}
        ends = set(_from_the_end(ways))
        # A block that no way leads from to the end, in an endless loop, counts as one that ends.
        for block in ways:
            if block not in ends:
                ways[block] = (_EXIT,)
        self._order = _from_the_end(ways)
        self._place = {block: index for index, block in enumerate(self._order)}
        self._after: dict[int, int] = {_EXIT: _EXIT}
        self._left = _MAX_VISITS
        while self._changes(ways) and self._left >= 0:
            pass

    @property
    def found(self) -> dict[int, int] | None:
        """By block; None: the function is too tangled."""
        return self._after if self._left >= 0 else None

    def _changes(self, ways: Mapping[int, tuple[int, ...]]) -> bool:
        has_changed = False
        for block in self._order[1:]:
            nearest: int | None = None
            for target in ways[block]:
                if target in self._after:
                    nearest = target if nearest is None else self._meet(nearest, target)
            if nearest is not None and self._after.get(block) != nearest:
                self._after[block] = nearest
                has_changed = True
            if self._left < 0:
                return False
        return has_changed

    def _meet(self, one: int, other: int) -> int:
        after, place = self._after, self._place
        while one != other:
            self._left -= 1
            if place[one] > place[other]:
                one = after[one]
            else:
                other = after[other]
        return one


def _from_the_end(ways: Mapping[int, tuple[int, ...]]) -> list[int]:
    """Return all blocks that reach the end, each behind one that it leads to; the end first."""
    before = predecessors_of(ways)
    left: list[int] = []
    seen = {_EXIT}
    stack = [(_EXIT, iter(before.get(_EXIT, ())))]
    while stack:
        block, more = stack[-1]
        following = next(more, None)
        if following is None:
            left.append(block)
            stack.pop()
        elif following not in seen:
            seen.add(following)
            stack.append((following, iter(before.get(following, ()))))
    return left[::-1]
