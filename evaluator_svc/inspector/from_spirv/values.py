"""The known facts about the values of one SPIR-V function, for one call of it.

Interprets the function until nothing changes any more.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from evaluator_svc.inspector.stride import (
    VARIES,
    Rule,
    Runs,
    Stride,
    added,
    left_shifted,
    merged,
    multiplied,
    subtracted,
    summed,
)
from evaluator_svc.spirv import Function, Instruction, Module
from evaluator_svc.spirv.opcodes import BuiltIn, Op, StorageClass

_MAX_ROUNDS: Final = 6
_OUTER_CHAINS: Final = frozenset({Op.PTR_ACCESS_CHAIN, Op.IN_BOUNDS_PTR_ACCESS_CHAIN})
_INNER_CHAINS: Final = frozenset({Op.ACCESS_CHAIN, Op.IN_BOUNDS_ACCESS_CHAIN})
_LANE_BUILT_INS: Final = {
    BuiltIn.LOCAL_INVOCATION_ID,
    BuiltIn.GLOBAL_INVOCATION_ID,
    BuiltIn.LOCAL_INVOCATION_INDEX,
    BuiltIn.GLOBAL_LINEAR_ID,
    BuiltIn.SUBGROUP_LOCAL_INVOCATION_ID,
}
"""Work-item queries whose first component goes up by one from neighbour to neighbour."""
_KEEPS_STRIDE: Final = frozenset(
    {
        *(Op.COPY_OBJECT, Op.U_CONVERT, Op.S_CONVERT, Op.BITCAST, Op.CONVERT_PTR_TO_U),
        *(Op.CONVERT_U_TO_PTR, Op.PTR_CAST_TO_GENERIC, Op.GENERIC_CAST_TO_PTR),
        Op.GENERIC_CAST_TO_PTR_EXPLICIT,
    }
)
_RUNS: Final = Runs()
_BINARY: Final[Mapping[int, Rule]] = {
    Op.I_ADD: summed,
    Op.BITWISE_OR: summed,
    Op.I_SUB: subtracted,
    Op.I_MUL: multiplied,
    Op.SHIFT_LEFT_LOGICAL: left_shifted,
    Op.SHIFT_RIGHT_LOGICAL: _RUNS.right_shifted,
    Op.SHIFT_RIGHT_ARITHMETIC: _RUNS.right_shifted,
    Op.U_DIV: _RUNS.divided,
    Op.S_DIV: _RUNS.divided,
    Op.U_MOD: _RUNS.remainder,
    Op.S_REM: _RUNS.remainder,
    Op.S_MOD: _RUNS.remainder,
    Op.BITWISE_AND: _RUNS.masked,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AbstractValue:
    """The known facts about an integer or a pointer."""

    stride: Stride = 0
    """Between neighbours; in bytes for a pointer."""
    storage: int | None = None
    """Where a pointer points."""
    base: int = 0
    """Variable or parameter that a pointer comes from; 0: unknown."""


class Values:
    """The values of one function."""

    def __init__(
        self, module: Module, function: Function, arguments: Iterable[AbstractValue]
    ) -> None:
        self._module = module
        self._body = function.body
        self._known: dict[int, AbstractValue] = {
            v.id: AbstractValue(storage=v.storage, base=v.id) for v in module.globals
        }
        self._types = {v.id: v.type_id for v in module.globals}
        self._types |= {i.result_id: i.type_id for i in (*function.parameters, *function.body)}
        self._stored: dict[int, Stride] = {}
        for parameter, argument in zip(function.parameters, arguments, strict=False):
            self._known[parameter.result_id] = argument
        self._settle()

    def of(self, value_id: int) -> AbstractValue:
        """Return the known facts about a value; constants and unknown values are uniform."""
        return self._known.get(value_id, AbstractValue())

    def pointee(self, pointer_id: int) -> int:
        """Return the type that a pointer points to; 0 when it is no pointer."""
        pointer = self._module.pointer(self._types.get(pointer_id, 0))
        return pointer.pointee if pointer is not None else 0

    def _settle(self) -> None:
        for _ in range(_MAX_ROUNDS):
            before = dict(self._known)
            for instruction in self._body:
                if instruction.result_id:
                    self._known[instruction.result_id] = self._result(instruction)
                elif instruction.opcode == Op.STORE and len(instruction.operands) > 1:
                    self._store(*instruction.operands[:2])
            if self._known == before:
                return

    def _store(self, pointer: int, value: int) -> None:
        target = self.of(pointer)
        if target.storage == StorageClass.FUNCTION:
            held = self._stored.get(target.base, 0)
            self._stored[target.base] = merged(held, self.of(value).stride)

    def _result(self, instruction: Instruction) -> AbstractValue:
        opcode, operands = instruction.opcode, instruction.operands
        value = AbstractValue()
        if opcode in _BINARY and len(operands) > 1:
            value = self._combined(opcode, *operands[:2])
        elif opcode in _KEEPS_STRIDE and operands:
            value = self._as_pointer(self.of(operands[0]), instruction)
        elif opcode == Op.LOAD and operands:
            value = self._loaded(instruction)
        elif opcode == Op.COMPOSITE_EXTRACT and len(operands) > 1:
            value = self._extracted(*operands[:2])
        elif opcode == Op.PHI:
            value = self._merged(operands[::2], instruction)
        elif opcode == Op.SELECT:
            value = self._merged(operands[1:3], instruction)
        elif (opcode in _OUTER_CHAINS or opcode in _INNER_CHAINS) and operands:
            value = self._chain(instruction)
        elif opcode == Op.VARIABLE:
            value = AbstractValue(storage=StorageClass.FUNCTION, base=instruction.result_id)
        elif opcode == Op.FUNCTION_CALL:
            uniform = all(self.of(i).stride == 0 for i in operands[1:])
            value = self._as_pointer(AbstractValue(stride=0 if uniform else VARIES), instruction)
        return value

    def _combined(self, opcode: int, left: int, right: int) -> AbstractValue:
        constants = self._module.constants
        known = (constants.get(left), constants.get(right))
        return AbstractValue(
            stride=_BINARY[opcode](self.of(left).stride, self.of(right).stride, known)
        )

    def _as_pointer(self, value: AbstractValue, instruction: Instruction) -> AbstractValue:
        """Give a pointer its storage: that of its type, unless the type leaves it open."""
        pointer = self._module.pointer(instruction.type_id)
        if pointer is None:
            return AbstractValue(stride=value.stride, storage=value.storage, base=value.base)
        storage = pointer.storage
        if storage == StorageClass.GENERIC and value.storage is not None:
            storage = value.storage
        return AbstractValue(stride=value.stride, storage=storage, base=value.base)

    def _merged(self, ids: tuple[int, ...], instruction: Instruction) -> AbstractValue:
        present = [self._known[i] for i in ids if i in self._known]
        stride: Stride = 0
        for value in present:
            stride = merged(stride, value.stride)
        first = next((v for v in present if v.storage is not None), AbstractValue())
        return self._as_pointer(
            AbstractValue(stride=stride, storage=first.storage, base=first.base), instruction
        )

    def _loaded(self, instruction: Instruction) -> AbstractValue:
        pointer = instruction.operands[0]
        if pointer in self._module.built_ins:
            is_lane = self._module.built_ins[pointer] in _LANE_BUILT_INS
            return AbstractValue(stride=1 if is_lane else 0, base=pointer)
        source = self.of(pointer)
        if source.stride != 0:
            return self._as_pointer(AbstractValue(stride=VARIES), instruction)
        held = self._stored.get(source.base, 0)
        stride = held if source.storage == StorageClass.FUNCTION else 0
        return self._as_pointer(AbstractValue(stride=stride), instruction)

    def _extracted(self, composite: int, index: int) -> AbstractValue:
        value = self.of(composite)
        # x is the fastest dimension; y and z are the same for all neighbours in it.
        is_other = value.base in self._module.built_ins and index > 0
        return AbstractValue() if is_other else AbstractValue(stride=value.stride)

    def _chain(self, instruction: Instruction) -> AbstractValue:
        operands = instruction.operands
        base = self.of(operands[0])
        pointee = self.pointee(operands[0])
        stride = base.stride
        indices = operands[1:]
        if instruction.opcode in _OUTER_CHAINS and indices:
            stride = added(stride, self._step(indices[0], pointee))
            indices = indices[1:]
        for index in indices:
            found = self._module.types.get(pointee)
            if found is None or not found.operands:
                break
            if found.opcode == Op.TYPE_STRUCT:
                member = self._module.constants.get(index, 0)
                pointee = found.operands[min(member, len(found.operands) - 1)]
                continue
            pointee = found.operands[0]
            stride = added(stride, self._step(index, pointee))
        return self._as_pointer(
            AbstractValue(stride=stride, storage=base.storage, base=base.base), instruction
        )

    def _step(self, index: int, type_id: int) -> Stride:
        size = self._module.size_bytes(type_id)
        return multiplied(self.of(index).stride, 0, (None, size))
