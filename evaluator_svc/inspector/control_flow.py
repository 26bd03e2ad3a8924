"""Loops among a function's blocks.

Compilers leave no structure and no helpful order of blocks, so loops are found by their back edges.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

_MAX_MEMBERS: Final = 1_000_000
"""Blocks of all loops together; loops beyond count as not there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """A natural loop."""

    header: int
    """Number of the block that it starts with."""
    blocks: frozenset[int]
    """Numbers of all its blocks, the header included."""


def loops(successors: Mapping[int, tuple[int, ...]]) -> Iterator[Loop]:
    """Iterate over the loops of a graph of blocks; the first block is the entry."""
    latches: dict[int, list[int]] = {}
    for source, header in _back_edges(successors):
        latches.setdefault(header, []).append(source)
    predecessors = predecessors_of(successors)
    left = _MAX_MEMBERS
    for header, sources in latches.items():
        if left < 0:
            return
        blocks = {header}
        pending = list(sources)
        while pending:
            label = pending.pop()
            if label not in blocks:
                blocks.add(label)
                pending.extend(predecessors.get(label, ()))
        left -= len(blocks)
        yield Loop(header=header, blocks=frozenset(blocks))


def predecessors_of(successors: Mapping[int, tuple[int, ...]]) -> dict[int, list[int]]:
    """Return by block those that lead to it, in order; none for a block that nothing leads to."""
    predecessors: dict[int, list[int]] = {}
    for source, targets in successors.items():
        for target in targets:
            predecessors.setdefault(target, []).append(source)
    return predecessors


def _back_edges(successors: Mapping[int, tuple[int, ...]]) -> Iterator[tuple[int, int]]:
    """Iterate over the edges to a block that the depth-first walk is still inside of."""
    if not successors:
        return
    entry = next(iter(successors))
    seen, inside = {entry}, {entry}
    stack = [(entry, iter(successors[entry]))]
    while stack:
        label, targets = stack[-1]
        target = next(targets, None)
        if target is None:
            inside.discard(label)
            stack.pop()
        elif target in inside:
            yield label, target
        elif target not in seen:
            seen.add(target)
            inside.add(target)
            stack.append((target, iter(successors[target])))
