"""What a loop carries from turn to turn in registers: tiles of products, online recurrences.

Looks at the data flow of SPIR-V values. Knows nothing of memory strides.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from evaluator_svc.behaviour.control_flow import ControlFlow, Loop, control_flow
from evaluator_svc.spirv import Function, Instruction, Module
from evaluator_svc.spirv.opcodes import OPENCL_EXP, OPENCL_FMA, Op, StorageClass

_MAX_NODES: Final = 400
"""Values looked at for one expression."""
_TILE_SIZE: Final = 4
"""Sums of products carried side by side that make a register tile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recurrences:
    """What the loops of one function carry."""

    has_register_tile: bool
    """Several sums of products whose factors are loaded once and used for more than one."""
    is_online: bool
    """A running value is corrected by what came later, as in online softmax or Welford."""


def recurrences(module: Module, function: Function) -> Recurrences:
    """Return what a function's loops carry."""
    flow = control_flow(function)
    expressions = _Expressions(module, function, flow)
    carried = [tuple(_carried(module, flow, loop)) for loop in flow.loops]
    return Recurrences(
        has_register_tile=any(expressions.is_tile(c) for c in carried)
        or any(expressions.is_array_tile(loop) for loop in flow.loops),
        is_online=any(expressions.is_online(c) for several in carried for c in several),
    )


@dataclass(frozen=True, slots=True)
class _Carried:
    """A floating-point value that a loop carries."""

    phi: int
    update: int
    """Value at the end of a turn."""
    lanes: int


def _carried(module: Module, flow: ControlFlow, loop: Loop) -> Iterator[_Carried]:
    for instruction in flow.blocks.get(loop.header, ()):
        if instruction.opcode != Op.PHI or not module.is_float(instruction.type_id):
            continue
        sources = zip(instruction.operands[::2], instruction.operands[1::2], strict=False)
        for value, block in sources:
            if block in loop.blocks:
                lanes = module.lanes(instruction.type_id)
                yield _Carried(instruction.result_id, value, lanes)


class _Expressions:
    def __init__(self, module: Module, function: Function, flow: ControlFlow) -> None:
        self._module = module
        self._flow = flow
        self._made = {i.result_id: i for i in function.body if i.result_id}
        self._headers = {
            i.result_id
            for loop in flow.loops
            for i in flow.blocks.get(loop.header, ())
            if i.opcode == Op.PHI
        }

    def is_tile(self, carried: tuple[_Carried, ...]) -> bool:
        """Return whether values carried by one loop form a register tile."""
        size = 0
        users: dict[int, int] = {}
        for one in carried:
            loads = self._product_loads(one.update, one.phi)
            if loads:
                size += one.lanes
                for load in loads:
                    users[load] = users.get(load, 0) + one.lanes
        return size >= _TILE_SIZE and any(count > 1 for count in users.values())

    def is_array_tile(self, loop: Loop) -> bool:
        """Return whether a loop adds products to a private array."""
        for label in loop.blocks:
            for instruction in self._flow.blocks.get(label, ()):
                if instruction.opcode != Op.STORE or len(instruction.operands) < 2:
                    continue
                pointer, value = instruction.operands[:2]
                held = self._private_load(value)
                is_array = self._array_length(pointer) >= _TILE_SIZE
                if is_array and held and self._product_loads(value, held):
                    return True
        return False

    def is_online(self, carried: _Carried) -> bool:
        """Return whether a carried value is corrected in each turn."""
        for node in self._tree(carried.update):
            factors = self._factors(node)
            if not factors:
                continue
            trees = [list(self._tree(f)) for f in factors]
            for own, other in ((0, 1), (1, 0)):
                holds = any(i.result_id == carried.phi for i in trees[own])
                if holds and any(self._is_exp(i) for i in trees[other]):
                    return True
                deviates = any(
                    i.opcode == Op.F_SUB and carried.phi in i.operands for i in trees[own]
                )
                if deviates and carried.phi in self._addends(carried.update):
                    return True
        return False

    def _product_loads(self, update: int, start: int) -> frozenset[int]:
        """Return the loads that are multiplied and added to `start`; none unless in pairs."""
        addends = self._addends(update)
        if start not in addends:
            return frozenset()
        found: set[int] = set()
        for addend in addends:
            node = self._made.get(addend)
            factors = self._factors(node) if node is not None else ()
            if not factors:
                continue
            left, right = (self._loads(f) for f in factors)
            if left and right and left.isdisjoint(right):
                found |= left | right
        return frozenset(found)

    def _addends(self, value: int) -> frozenset[int]:
        """Return everything that a sum is made of, the partial sums included."""
        seen: set[int] = set()
        pending = [value]
        while pending and len(seen) < _MAX_NODES:
            current = pending.pop()
            if current in seen:
                continue
            seen.add(current)
            node = self._made.get(current)
            if node is None or current in self._headers:
                continue
            if node.opcode in (Op.F_ADD, Op.F_SUB):
                pending.extend(node.operands[:2])
            elif self._is_fma(node):
                pending.append(node.operands[4])
            elif node.opcode == Op.PHI:
                pending.extend(node.operands[::2])
            elif node.opcode == Op.SELECT:
                pending.extend(node.operands[1:3])
        return frozenset(seen)

    def _factors(self, node: Instruction) -> tuple[int, ...]:
        if node.opcode in (Op.F_MUL, Op.F_DIV, Op.VECTOR_TIMES_SCALAR):
            return node.operands[:2]
        return node.operands[2:4] if self._is_fma(node) else ()

    def _loads(self, value: int) -> frozenset[int]:
        return frozenset(i.result_id for i in self._tree(value) if i.opcode == Op.LOAD)

    def _tree(self, value: int) -> Iterator[Instruction]:
        """Iterate over what a value is computed from, up to loads and loop-carried values."""
        seen: set[int] = set()
        pending = [value]
        while pending and len(seen) < _MAX_NODES:
            current = pending.pop()
            node = self._made.get(current)
            if node is None or current in seen:
                continue
            seen.add(current)
            yield node
            if current not in self._headers and node.opcode != Op.LOAD:
                pending.extend(node.operands)

    def _private_load(self, value: int) -> int:
        """Return a load of private memory among a sum's addends; 0 when there is none."""
        for addend in self._addends(value):
            node = self._made.get(addend)
            if node is None or node.opcode != Op.LOAD or not node.operands:
                continue
            if self._array_length(node.operands[0]):
                return addend
        return 0

    def _array_length(self, pointer: int) -> int:
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

    def _is_fma(self, node: Instruction) -> bool:
        operands = node.operands
        return node.opcode == Op.EXT_INST and len(operands) > 4 and operands[1] in OPENCL_FMA

    def _is_exp(self, node: Instruction) -> bool:
        operands = node.operands
        return node.opcode == Op.EXT_INST and len(operands) > 1 and operands[1] in OPENCL_EXP
