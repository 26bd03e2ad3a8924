"""Whether a function reads a kind of memory before anything can have been written there.

A read counts when no write may come before it and every write may come after it: in code that has
a part of the group write for another part, neither holds. Knows nothing of instructions.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

_MAX_SEARCHES: Final = 64
"""Blocks with an early read that are followed to every write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Accesses:
    """Positions in one block of the accesses of one kind of memory."""

    reads: Sequence[int] = ()
    writes: Sequence[int] = ()


def reads_stale(
    accesses: Mapping[int, Accesses], successors: Mapping[int, tuple[int, ...]]
) -> bool:
    """Return whether a function reads what it has not written.

    Args:
        accesses: Of every block that has any.
        successors: Blocks that may follow each block; the first one is where the function begins.
    """
    if not any(found.reads for found in accesses.values()):
        return False
    writers = [block for block, found in accesses.items() if found.writes]
    written = _reachable(successors, (n for b in writers for n in successors.get(b, ())))
    alive = _reachable(successors, list(successors)[:1])
    searches = 0
    for block, found in accesses.items():
        if not found.reads or block in written or block not in alive:
            continue
        first = min(found.reads)
        if any(position < first for position in found.writes):
            continue
        searches += 1
        if searches > _MAX_SEARCHES:
            return False
        after = _reachable(successors, successors.get(block, ()))
        if all(writer in after or writer == block for writer in writers):
            return True
    return False


def _reachable(successors: Mapping[int, tuple[int, ...]], start: Iterable[int]) -> set[int]:
    waiting = list(start)
    found = set(waiting)
    while waiting:
        for block in successors.get(waiting.pop(), ()):
            if block not in found:
                found.add(block)
                waiting.append(block)
    return found
