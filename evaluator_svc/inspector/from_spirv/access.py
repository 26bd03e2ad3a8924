"""Memory accesses of a SPIR-V kernel, found by walking it and the functions that it calls."""

from collections.abc import Hashable, Iterator
from dataclasses import replace
from typing import Final

from evaluator_svc.inspector.access import Access
from evaluator_svc.inspector.from_spirv.lower import space_of
from evaluator_svc.inspector.from_spirv.values import AbstractValue, Values
from evaluator_svc.inspector.lowered_program import FAR, Body, LoweredProgram, Space
from evaluator_svc.spirv import Instruction, Module
from evaluator_svc.spirv.opcodes import Op, StorageClass

_MAX_CALL_DEPTH: Final = 6
_MAX_INSTRUCTIONS: Final = 100_000
"""Looked at in one kernel; what lies beyond counts as not there."""


_COPYING: Final = frozenset(
    {
        *(Op.PHI, Op.SELECT, Op.COPY_OBJECT, Op.BITCAST, Op.F_CONVERT, Op.S_CONVERT),
        *(Op.U_CONVERT, Op.COMPOSITE_EXTRACT, Op.COMPOSITE_CONSTRUCT),
    }
)

_Moved = tuple[Access, int]
"""An access, and the id of what is loaded or stored."""


def accesses(
    module: Module, program: LoweredProgram[Instruction]
) -> tuple[tuple[Access, ...], ...]:
    """Return every load and store of each kernel, those of called functions included."""
    walked = [tuple(_Walk(module, program).kernel(kernel)) for kernel in program.kernels]
    every = [moved for several in walked for moved in several]
    loaded = {value for access, value in every if access.space in FAR and not access.is_store}
    origins = _Origins(program, loaded)
    return tuple(
        tuple(_with_origin(access, value, origins) for access, value in several)
        for several in walked
    )


def _with_origin(access: Access, value: int, origins: "_Origins") -> Access:
    is_staged = access.is_store and access.space is Space.GROUP
    return replace(access, is_copy=True) if is_staged and origins.is_loaded(value) else access


class _Walk:
    def __init__(self, module: Module, program: LoweredProgram[Instruction]) -> None:
        self._module = module
        self._program = program
        self._left = _MAX_INSTRUCTIONS

    def kernel(self, kernel: Body[Instruction]) -> Iterator[_Moved]:
        """Iterate over a kernel's accesses."""
        arguments = []
        for parameter in self._module.functions[kernel.name].parameters:
            pointer = self._module.pointer(parameter.type_id)
            storage = None if pointer is None else pointer.storage
            arguments.append(AbstractValue(storage=storage, base=parameter.result_id))
        yield from self._function(kernel, tuple(arguments), (), 0)

    def _function(
        self,
        body: Body[Instruction],
        arguments: tuple[AbstractValue, ...],
        around: tuple[Hashable, ...],
        call_depth: int,
    ) -> Iterator[_Moved]:
        """Iterate over a function's accesses; `around` are the loops of its callers."""
        function = self._module.functions[body.name]
        self._left -= len(function.body)
        if call_depth > _MAX_CALL_DEPTH or self._left < 0:
            return
        values = Values(self._module, function, arguments)
        for label in body.blocks:
            loops = (*around, *((body.name, loop.header) for loop in body.around(label)))
            for instruction in body.instructions(label):
                if instruction.opcode == Op.FUNCTION_CALL and instruction.operands:
                    callee = self._program.functions.get(instruction.operands[0])
                    if callee is not None:
                        passed = tuple(values.of(i) for i in instruction.operands[1:])
                        yield from self._function(callee, passed, loops, call_depth + 1)
                else:
                    yield from self._access(instruction, values, loops)

    def _access(
        self, instruction: Instruction, values: Values, loops: tuple[Hashable, ...]
    ) -> Iterator[_Moved]:
        opcode, operands = instruction.opcode, instruction.operands
        if opcode == Op.LOAD and operands:
            value = instruction.result_id
        elif opcode == Op.STORE and len(operands) > 1:
            value = operands[1]
        else:
            return
        pointer = values.of(operands[0])
        if pointer.storage is None or pointer.storage == StorageClass.INPUT:
            return
        pointee = values.pointee(operands[0])
        access = Access(
            space=space_of(pointer.storage),
            is_store=opcode == Op.STORE,
            stride=pointer.stride,
            size_bytes=self._module.size_bytes(pointee),
            lanes=self._module.lanes(pointee),
            depth=len(loops),
            outermost_loop=loops[0] if loops else None,
        )
        yield access, value


class _Origins:
    """Where values come from, through copies only."""

    def __init__(self, program: LoweredProgram[Instruction], loaded: set[int]) -> None:
        instructions = (o.instruction for f in program.functions.values() for o in f.operations)
        self._made = {i.result_id: i for i in instructions if i.opcode in _COPYING}
        self._loaded = loaded

    def is_loaded(self, value: int) -> bool:
        """Return whether a value may be one that was loaded from global memory."""
        pending, seen = [value], set()
        while pending:
            current = pending.pop()
            if current in self._loaded:
                return True
            if current not in seen and current in self._made:
                seen.add(current)
                pending.extend(self._made[current].operands)
        return False
