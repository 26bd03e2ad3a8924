"""Memory accesses of a SPIR-V kernel.

Walks a kernel and the functions that it calls. Knows nothing of levels.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from evaluator_svc.inspector.access import Access
from evaluator_svc.inspector.from_spirv.flow import control_flow
from evaluator_svc.inspector.from_spirv.values import Value, Values
from evaluator_svc.spirv import Function, Instruction, Module
from evaluator_svc.spirv.opcodes import Op, StorageClass

_MAX_CALL_DEPTH: Final = 6
_MAX_INSTRUCTIONS: Final = 100_000
"""Looked at in one kernel; what lies beyond counts as not there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpirvAccess(Access):
    """An access and what it moves."""

    value: int
    """Id of what was loaded or is stored."""


def accesses(module: Module, kernel: Function) -> tuple[SpirvAccess, ...]:
    """Return every load and store of a kernel, those of called functions included."""
    arguments = []
    for parameter in kernel.parameters:
        pointer = module.pointer(parameter.type_id)
        storage = None if pointer is None else pointer.storage
        arguments.append(Value(storage=storage, base=parameter.result_id))
    return tuple(_Walk(module).function(kernel, tuple(arguments), (), 0))


class _Walk:
    def __init__(self, module: Module) -> None:
        self._module = module
        self._left = _MAX_INSTRUCTIONS

    def function(
        self,
        function: Function,
        arguments: tuple[Value, ...],
        around: tuple[tuple[int, int], ...],
        call_depth: int,
    ) -> Iterator[SpirvAccess]:
        """Iterate over a function's accesses; `around` are the loops of its callers."""
        self._left -= len(function.body)
        if call_depth > _MAX_CALL_DEPTH or self._left < 0:
            return
        values = Values(self._module, function, arguments)
        flow = control_flow(function)
        for label, block in flow.blocks.items():
            loops = (*around, *((function.id, loop.header) for loop in flow.around(label)))
            for instruction in block:
                if instruction.opcode == Op.FUNCTION_CALL and instruction.operands:
                    callee = self._module.functions.get(instruction.operands[0])
                    if callee is not None:
                        passed = tuple(values.of(i) for i in instruction.operands[1:])
                        yield from self.function(callee, passed, loops, call_depth + 1)
                else:
                    yield from self._access(instruction, values, loops, function.id)

    def _access(
        self,
        instruction: Instruction,
        values: Values,
        loops: tuple[tuple[int, int], ...],
        function: int,
    ) -> Iterator[SpirvAccess]:
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
        yield SpirvAccess(
            storage=pointer.storage,
            is_store=opcode == Op.STORE,
            stride=pointer.stride,
            size_bytes=self._module.size_bytes(pointee),
            lanes=self._module.lanes(pointee),
            depth=len(loops),
            outermost_loop=loops[0] if loops else None,
            value=value,
        )
