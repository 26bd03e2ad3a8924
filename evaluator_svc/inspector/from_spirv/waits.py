"""Loops that may end by what others write: a kernel in which one work-group may wait for another.

Errs on the side of waiting: such a kernel is run once more, with one work-group at a time.
"""

from collections.abc import Mapping
from typing import Final

from evaluator_svc.inspector.control_flow import Loop
from evaluator_svc.inspector.lowered_program import Body, LoweredProgram, Operation, Space
from evaluator_svc.spirv import Instruction
from evaluator_svc.spirv.opcodes import Op

_BRANCHES: Final = frozenset({Op.BRANCH_CONDITIONAL, Op.SWITCH})


def may_wait(program: LoweredProgram[Instruction]) -> bool:
    """Return whether any function has a loop whose end depends on memory that it reads inside."""
    return any(_waits(body, loop) for body in program.functions.values() for loop in body.loops)


def _waits(body: Body[Instruction], loop: Loop) -> bool:
    inside = {
        operation.instruction.result_id: operation
        for block in loop.blocks
        for operation in body.blocks.get(block, ())
        if operation.instruction.result_id
    }
    for block in loop.blocks:
        last = body.blocks[block][-1].instruction if body.blocks.get(block) else None
        leaves = any(target not in loop.blocks for target in body.successors[block])
        if last is None or not leaves or last.opcode not in _BRANCHES:
            continue
        if last.operands and _is_read(last.operands[0], inside):
            return True
    return False


def _is_read(value: int, inside: Mapping[int, Operation[Instruction]]) -> bool:
    """Return whether a value follows from memory that the loop reads, or from a call in it."""
    waiting, seen = [value], {value}
    while waiting:
        operation = inside.get(waiting.pop())
        if operation is None:
            continue
        if operation.reads - {Space.OTHER} or operation.instruction.opcode == Op.FUNCTION_CALL:
            return True
        following = [v for v in operation.instruction.operands if v not in seen]
        waiting += following
        seen.update(following)
    return False
