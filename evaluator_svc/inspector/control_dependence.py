"""Which branches decide whether a block is reached: those of which some ways lead past it."""

from collections.abc import Mapping

_EXIT = 0
"""Number of the end that all ways lead to; no block's."""


def deciding_blocks(successors: Mapping[int, tuple[int, ...]]) -> dict[int, set[int]]:
    """Return for each block the blocks whose branch directly decides whether it is reached.

    Source: J. Ferrante, K. Ottenstein and J. Warren, The program dependence graph and its use in
    optimization (1987).
    """
    after = _post_dominators(successors)
    found: dict[int, set[int]] = {block: set() for block in successors}
    for block, targets in successors.items():
        if len(set(targets)) < 2:
            continue
        for target in targets:
            reached = target
            while reached not in (after[block], _EXIT):
                found[reached].add(block)
                reached = after[reached]
    return found


def _post_dominators(successors: Mapping[int, tuple[int, ...]]) -> dict[int, int]:
    """Return for each block the next one that every way to the end goes through.

    Source: K. Cooper, T. Harvey and K. Kennedy, A simple, fast dominance algorithm (2001).
    """
    ways = {block: targets or (_EXIT,) for block, targets in successors.items()}
    ends = set(_from_the_end(ways))
    # A block that no way leads from to the end, in an endless loop, counts as one that ends.
    for block in ways:
        if block not in ends:
            ways[block] = (_EXIT,)
    order = _from_the_end(ways)
    place = {block: index for index, block in enumerate(order)}
    after: dict[int, int] = {_EXIT: _EXIT}
    has_changed = True
    while has_changed:
        has_changed = False
        for block in order[1:]:
            nearest: int | None = None
            for target in ways[block]:
                if target in after:
                    nearest = target if nearest is None else _meet(nearest, target, after, place)
            if nearest is not None and after.get(block) != nearest:
                after[block] = nearest
                has_changed = True
    return after


def _meet(one: int, other: int, after: Mapping[int, int], place: Mapping[int, int]) -> int:
    while one != other:
        while place[one] > place[other]:
            one = after[one]
        while place[other] > place[one]:
            other = after[other]
    return one


def _from_the_end(ways: Mapping[int, tuple[int, ...]]) -> list[int]:
    """Return all blocks that reach the end, each behind one that it leads to; the end first."""
    before: dict[int, list[int]] = {}
    for block, targets in ways.items():
        for target in targets:
            before.setdefault(target, []).append(block)
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
