"""Where the pointers of a SPIR-V module come from.

Follows values backwards from each place where a number becomes a pointer. Errs on the side of
honesty: whatever has a pointer among its origins passes.
"""

from collections.abc import Iterator
from enum import Enum
from typing import Final

from evaluator_svc.spirv import Instruction, Module
from evaluator_svc.spirv.opcodes import ATOMICS, Op, StorageClass

_CHAINS: Final = frozenset(
    {
        *(Op.ACCESS_CHAIN, Op.IN_BOUNDS_ACCESS_CHAIN),
        *(Op.PTR_ACCESS_CHAIN, Op.IN_BOUNDS_PTR_ACCESS_CHAIN),
    }
)
_POINTER_CASTS: Final = frozenset(
    {
        *(Op.BITCAST, Op.COPY_OBJECT, Op.PTR_CAST_TO_GENERIC),
        *(Op.GENERIC_CAST_TO_PTR, Op.GENERIC_CAST_TO_PTR_EXPLICIT),
    }
)
_ARITHMETIC: Final = frozenset(
    {
        *(Op.U_CONVERT, Op.S_CONVERT, Op.BITCAST, Op.COPY_OBJECT),
        *range(Op.S_NEGATE, Op.S_MOD + 1),
        *range(Op.SHIFT_RIGHT_LOGICAL, Op.BITWISE_AND + 2),
        *(Op.COMPOSITE_EXTRACT, Op.COMPOSITE_CONSTRUCT),
    }
)
_WRITES: Final = frozenset({Op.STORE, Op.COPY_MEMORY, Op.COPY_MEMORY_SIZED})
_MAX_STEPS: Final = 200_000
"""Most steps of following values in one module; a large kernel takes some ten thousand."""


class Origin(Enum):
    """The origin of a pointer that was made from a number."""

    NUMBERS = "numbers"
    """Only constants, the kernel's numbers, and work-item ids."""
    MEMORY = "memory"
    """Also numbers that were read from memory."""


class Pointers:
    """Finds pointers that were not handed over."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._definitions = {i.result_id: i for i in module.instructions() if i.result_id}
        self._parameters = {p.result_id: p for f in module.functions.values() for p in f.parameters}
        self._globals = {v.id: v.type_id for v in module.globals}
        self._passed: dict[int, list[int]] = {}
        self._stored: dict[int, list[int]] = {}
        self._steps = 0
        self._note_calls_and_stores()

    def forged(self) -> Iterator[Origin]:
        """Iterate over the origins of all pointers that come from no pointer."""
        for instruction in self._module.instructions():
            if self._steps > _MAX_STEPS:
                yield Origin.MEMORY  # too tangled to tell
                return
            found = self._forged(instruction)
            if found is not None:
                yield found

    def written_constants(self) -> frozenset[str]:
        """Return the names of the module's constants that are written to."""
        constants = {v.id: v.name for v in self._module.globals if v.is_constant}
        roots = (
            self._root(i.operands[0])
            for i in self._module.instructions()
            if i.operands and (i.opcode in _WRITES or i.opcode in ATOMICS)
        )
        return frozenset(constants[root] for root in roots if root in constants)

    def _forged(self, instruction: Instruction) -> Origin | None:
        operands = instruction.operands
        if not operands:
            return None
        if instruction.opcode in _CHAINS:
            return Origin.NUMBERS if self._root(operands[0]) in self._module.constants else None
        if self._module.pointer(instruction.type_id) is None:
            return None
        if instruction.opcode == Op.LOAD:
            return Origin.MEMORY if self._is_shared_memory(operands[0]) else None
        is_cast = instruction.opcode == Op.CONVERT_U_TO_PTR or (
            instruction.opcode == Op.BITCAST and not self._is_pointer(operands[0])
        )
        return self._origin(operands[0]) if is_cast else None

    def _origin(self, start: int) -> Origin | None:
        """Return the origin of a number; None if it is made of a pointer, or only of zeros."""
        waiting, seen = [start], {start}
        reads_memory = has_value = False
        while waiting:
            self._steps += 1
            value = waiting.pop()
            if self._is_pointer(value):
                return None
            following, is_read = self._inputs(value)
            reads_memory |= is_read
            has_value |= self._module.constants.get(value, 1) != 0
            waiting += [v for v in following if v not in seen]
            seen.update(following)
        if not has_value:
            return None
        return Origin.MEMORY if reads_memory else Origin.NUMBERS

    def _inputs(self, value: int) -> tuple[list[int], bool]:
        """Return the operands of a value, and whether it is read from memory."""
        if value in self._module.constants:
            return [], False
        if value in self._parameters:
            return self._passed.get(value, []), False
        definition = self._definitions.get(value)
        if definition is None:
            return [], False
        operands = list(definition.operands)
        if definition.opcode == Op.CONVERT_PTR_TO_U:
            return operands[:1], False
        if definition.opcode == Op.PHI:
            return operands[::2], False
        if definition.opcode == Op.SELECT:
            return operands[1:], False
        if definition.opcode == Op.LOAD and operands:
            root = self._root(operands[0])
            stored = self._stored.get(root, [])
            return stored, not stored and root not in self._module.built_ins
        if definition.opcode in _ARITHMETIC:
            return [v for v in operands if self._is_value(v)], False
        return [], True

    def _note_calls_and_stores(self) -> None:
        for instruction in self._module.instructions():
            operands = instruction.operands
            if instruction.opcode == Op.FUNCTION_CALL and operands:
                callee = self._module.functions.get(operands[0])
                parameters = callee.parameters if callee is not None else ()
                for parameter, given in zip(parameters, operands[1:], strict=False):
                    self._passed.setdefault(parameter.result_id, []).append(given)
            elif instruction.opcode == Op.STORE and len(operands) > 1:
                root = self._definitions.get(self._root(operands[0]))
                if root is not None and root.opcode == Op.VARIABLE:
                    self._stored.setdefault(root.result_id, []).append(operands[1])

    def _root(self, pointer: int) -> int:
        """Return the variable or argument that a pointer points into, through casts and offsets."""
        while self._steps <= _MAX_STEPS:
            definition = self._definitions.get(pointer)
            if definition is None or not definition.operands:
                return pointer
            if definition.opcode not in _CHAINS and definition.opcode not in _POINTER_CASTS:
                return pointer
            self._steps += 1
            pointer = definition.operands[0]
        return pointer

    def _is_shared_memory(self, pointer: int) -> bool:
        """Return whether a pointer is to memory that others than the work-item may write."""
        type_ = self._module.pointer(self._type_of(pointer))
        if type_ is None or type_.storage != StorageClass.CROSS_WORKGROUP:
            return False
        # What a module's own constants point to was put there by the compiler.
        return self._root(pointer) not in self._globals

    def _is_pointer(self, value: int) -> bool:
        return self._module.pointer(self._type_of(value)) is not None

    def _is_value(self, value: int) -> bool:
        known = (self._module.constants, self._parameters, self._definitions)
        return any(value in ids for ids in known)

    def _type_of(self, value: int) -> int:
        definition = self._definitions.get(value) or self._parameters.get(value)
        return self._globals.get(value, 0) if definition is None else definition.type_id
