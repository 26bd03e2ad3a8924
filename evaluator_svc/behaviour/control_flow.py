"""Blocks and loops of a SPIR-V function.

Kernel SPIR-V has no structured merge instructions, and its blocks stand in no helpful order, so
loops are found by their back edges. Knows nothing of memory.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from evaluator_svc.spirv import Function, Instruction
from evaluator_svc.spirv.opcodes import Op


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """A natural loop."""

    header: int
    """Label of the block that it starts with."""
    blocks: frozenset[int]
    """Labels of all its blocks, the header included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlFlow:
    """Blocks of a function in order, and the loops around each."""

    blocks: Mapping[int, tuple[Instruction, ...]]
    loops: tuple[Loop, ...]

    def around(self, label: int) -> tuple[Loop, ...]:
        """Return the loops that a block is in, outermost first."""
        found = (loop for loop in self.loops if label in loop.blocks)
        return tuple(sorted(found, key=lambda loop: -len(loop.blocks)))


def control_flow(function: Function) -> ControlFlow:
    """Return blocks and loops; jumps to nowhere are left out."""
    blocks: dict[int, list[Instruction]] = {}
    current: list[Instruction] = []
    for instruction in function.body:
        if instruction.opcode == Op.LABEL:
            current = blocks.setdefault(instruction.result_id, [])
        else:
            current.append(instruction)
    successors = {
        label: tuple(t for t in _targets(body) if t in blocks) for label, body in blocks.items()
    }
    return ControlFlow(
        blocks={label: tuple(body) for label, body in blocks.items()},
        loops=tuple(_loops(successors)),
    )


def _targets(block: list[Instruction]) -> Iterator[int]:
    if not block:
        return
    last = block[-1]
    if last.opcode == Op.BRANCH:
        yield from last.operands[:1]
    elif last.opcode == Op.BRANCH_CONDITIONAL:
        yield from last.operands[1:3]
    elif last.opcode == Op.SWITCH:
        # Literals and labels alternate; a literal that equals a label costs a false edge only.
        yield from last.operands[1:]


def _loops(successors: Mapping[int, tuple[int, ...]]) -> Iterator[Loop]:
    latches: dict[int, list[int]] = {}
    for source, header in _back_edges(successors):
        latches.setdefault(header, []).append(source)
    predecessors: dict[int, list[int]] = {}
    for source, targets in successors.items():
        for target in targets:
            predecessors.setdefault(target, []).append(source)
    for header, sources in latches.items():
        blocks = {header}
        pending = list(sources)
        while pending:
            label = pending.pop()
            if label not in blocks:
                blocks.add(label)
                pending.extend(predecessors.get(label, ()))
        yield Loop(header=header, blocks=frozenset(blocks))


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
