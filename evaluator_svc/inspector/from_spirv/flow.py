"""Blocks and loops of a SPIR-V function. Knows nothing of memory."""

from collections.abc import Iterator

from evaluator_svc.inspector.control_flow import ControlFlow, loops
from evaluator_svc.spirv import Function, Instruction
from evaluator_svc.spirv.opcodes import Op


def control_flow(function: Function) -> ControlFlow[Instruction]:
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
        loops=tuple(loops(successors)),
        successors=successors,
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
