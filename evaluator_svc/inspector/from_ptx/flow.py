"""Blocks and loops of a PTX function. Knows nothing of memory."""

from collections.abc import Iterator, Mapping
from typing import Final

from evaluator_svc.inspector.control_flow import ControlFlow, loops
from evaluator_svc.ptx import LABEL, Function, Instruction

_MAX_BLOCKS: Final = 5_000
"""A function of more has no loops told."""
_JUMPS: Final = frozenset({"bra", "brx", "ret", "exit", "trap"})


def control_flow(function: Function) -> ControlFlow[Instruction]:
    """Return blocks and loops; jumps to nowhere are left out."""
    blocks: dict[int, list[Instruction]] = {1: []}
    labels: dict[str, int] = {}
    tables: dict[str, tuple[str, ...]] = {}
    for instruction in function.body:
        if instruction.opcode == LABEL:
            if blocks[len(blocks)]:
                blocks[len(blocks) + 1] = []
            name, *targets = instruction.operands
            labels[name] = len(blocks)
            tables[name] = tuple(targets)
            continue
        blocks[len(blocks)].append(instruction)
        if instruction.opcode in _JUMPS:
            blocks[len(blocks) + 1] = []
    successors = {
        number: tuple(_successors(number, body, labels, tables, len(blocks)))
        for number, body in blocks.items()
    }
    return ControlFlow(
        blocks={number: tuple(body) for number, body in blocks.items()},
        loops=tuple(loops(successors)) if len(blocks) <= _MAX_BLOCKS else (),
        successors=successors,
    )


def _successors(
    number: int,
    block: list[Instruction],
    labels: Mapping[str, int],
    tables: Mapping[str, tuple[str, ...]],
    count: int,
) -> Iterator[int]:
    last = block[-1] if block else None
    if last is not None and last.opcode in ("bra", "brx"):
        targets = tables.get(last.operands[-1], ()) if last.opcode == "brx" else last.operands[:1]
        yield from (labels[target] for target in targets if target in labels)
    falls_through = last is None or last.opcode not in _JUMPS or bool(last.predicate)
    if falls_through and number < count:
        yield number + 1
