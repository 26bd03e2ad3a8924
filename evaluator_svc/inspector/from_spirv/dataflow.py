"""The dataflow of a SPIR-V function."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from evaluator_svc.inspector.control_flow import Loop
from evaluator_svc.inspector.dataflow import Dataflow, Kind, LoopValue, Node
from evaluator_svc.inspector.lowered_program import Body
from evaluator_svc.inspector.recurrence import TILE_SIZE
from evaluator_svc.spirv import Instruction, Module
from evaluator_svc.spirv.opcodes import OPENCL_EXP, OPENCL_FMA, Op, StorageClass

_KINDS: Final[Mapping[int, Kind]] = {
    Op.F_ADD: Kind.ADD,
    Op.F_SUB: Kind.SUBTRACT,
    Op.F_MUL: Kind.MULTIPLY,
    Op.VECTOR_TIMES_SCALAR: Kind.MULTIPLY,
    Op.F_DIV: Kind.DIVIDE,
    Op.LOAD: Kind.LOAD,
}


def dataflow(module: Module, body: Body[Instruction]) -> Dataflow:
    """Return the operands of a function's values."""
    instructions = [operation.instruction for operation in body.operations]
    arrays = _PrivateArrays(module, instructions)
    return Dataflow(
        nodes={i.result_id: _node(i) for i in instructions if i.result_id},
        carried=tuple(tuple(_carried(module, body, loop)) for loop in body.loops),
        heads=frozenset(
            i.result_id
            for loop in body.loops
            for i in body.instructions(loop.header)
            if i.opcode == Op.PHI
        ),
        array_updates=tuple(
            i.operands[1]
            for loop in body.loops
            for block in loop.blocks
            for i in body.instructions(block)
            if i.opcode == Op.STORE
            and len(i.operands) > 1
            and arrays.length(i.operands[0]) >= TILE_SIZE
        ),
        array_loads=frozenset(
            i.result_id
            for i in instructions
            if i.opcode == Op.LOAD and i.operands and arrays.length(i.operands[0])
        ),
    )


def _node(instruction: Instruction) -> Node:
    opcode, operands = instruction.opcode, instruction.operands
    kind = _KINDS.get(opcode, Kind.OTHER)
    if opcode == Op.PHI:
        kind, operands = Kind.CHOICE, operands[::2]
    elif opcode == Op.SELECT:
        kind, operands = Kind.CHOICE, operands[1:3]
    elif opcode == Op.EXT_INST and len(operands) > 2:
        if operands[1] in OPENCL_FMA and len(operands) > 4:
            kind = Kind.MULTIPLY_ADD
        elif operands[1] in OPENCL_EXP:
            kind = Kind.EXPONENTIAL
        operands = operands[2:]
    return Node(instruction.result_id, kind, operands)


def _carried(module: Module, body: Body[Instruction], loop: Loop) -> Iterator[LoopValue]:
    for instruction in body.instructions(loop.header):
        if instruction.opcode != Op.PHI or not module.is_float(instruction.type_id):
            continue
        sources = zip(instruction.operands[::2], instruction.operands[1::2], strict=False)
        for value, block in sources:
            if block in loop.blocks:
                lanes = module.lanes(instruction.type_id)
                yield LoopValue(instruction.result_id, value, lanes)


class _PrivateArrays:
    """Arrays of a work-item that the compiler left in memory."""

    def __init__(self, module: Module, instructions: Sequence[Instruction]) -> None:
        self._module = module
        self._made = {i.result_id: i for i in instructions if i.result_id}

    def length(self, pointer: int) -> int:
        """Return the length of the private array that a pointer is into; 0: it is none."""
        for _ in range(8):
            node = self._made.get(pointer)
            if node is None:
                return 0
            if node.opcode == Op.VARIABLE:
                found = self._module.pointer(node.type_id)
                if found is None or found.storage != StorageClass.FUNCTION:
                    return 0
                return self._module.size_bytes(found.pointee) // 4
            if not node.operands:
                return 0
            pointer = node.operands[0]
        return 0
