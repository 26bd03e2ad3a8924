"""Finds reads of memory before anything can have been written there.

A read is reported if no write can come before it, and every write can come after it. In code where
one part of the group writes for another part, neither holds.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from evaluator_svc.inspector.lowered_program import Body, LoweredProgram, Operation, Space
from evaluator_svc.policy.finding import rule_finding
from kernel_foundry.domain.finding import Finding

_MAX_SEARCHES: Final = 64
"""Most blocks with an early read that are followed to every write."""


def stale_reads(program: LoweredProgram[Any], names: Mapping[Space, str]) -> Iterator[Finding]:
    """Iterate over the kinds of memory that some kernel reads before anything is written there.

    Args:
        program: The program.
        names: Kinds that are looked at, and what the language calls them.
    """
    for space, name in names.items():
        if any(_is_stale(main, space) for main in program.mains):
            message = f"{name} memory is read before anything is written there"
            hint = "write it first: it holds what was there before"
            yield rule_finding("object.stale_memory", message, hint)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Accesses:
    """Positions in one block of the accesses of one kind of memory."""

    reads: Sequence[int]
    writes: Sequence[int]


def _is_stale(body: Body[Any], space: Space) -> bool:
    if not any(space in operation.reads for operation in body.operations):
        return False
    accesses = {block: _accesses(found, space) for block, found in body.blocks.items()}
    used = {block: found for block, found in accesses.items() if found.reads or found.writes}
    return _reads_stale(used, body.successors)


def _accesses(operations: Sequence[Operation[Any]], space: Space) -> _Accesses:
    return _Accesses(
        reads=[i for i, operation in enumerate(operations) if space in operation.reads],
        writes=[i for i, operation in enumerate(operations) if space in operation.writes],
    )


def _reads_stale(
    accesses: Mapping[int, _Accesses], successors: Mapping[int, tuple[int, ...]]
) -> bool:
    """Return whether blocks with these accesses read what was not written."""
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
