"""A SPIR-V module whose work-groups and work-items run in reverse order, as far as they can tell.

No SYCL runtime lets a caller choose the order. So every work-group asks for its number and gets
that of its opposite: N - 1 - id for id, which is N + ~id. The runtime's first group does the work
of the last one. Work-items of a group likewise. Where a kernel exchanges values by lane, lanes are
tied to the hardware: sub-groups are reversed as wholes, and each item keeps its lane. Where whole
groups exchange values in the order of their items, only groups are reversed. A program that is
right under SYCL's rules gives the same.
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from evaluator_svc.messages.item_order import ItemOrder
from evaluator_svc.spirv.opcodes import (
    DECORATION_BUILT_IN,
    GROUP_EXCHANGES,
    GROUP_REDUCTIONS,
    MATRIX_PRODUCTS,
    SUBGROUP_EXCHANGES,
    Op,
    StorageClass,
)

_HEADER_WORDS: Final = 5
_BOUND: Final = 3
"""Word of the header that all ids are below."""
_NOT: Final = 200
_SUBGROUP: Final = 3
"""The scope."""
_REDUCE: Final = 0
"""The group operation that knows no order, unlike scans."""
_NUM_WORKGROUPS: Final = 24
_WORKGROUP_SIZE: Final = 25
_WORKGROUP_ID: Final = 26
_LOCAL_ID: Final = 27
_GLOBAL_ID: Final = 28
_GLOBAL_SIZE: Final = 31
_SUBGROUP_MAX_SIZE: Final = 37
_NUM_SUBGROUPS: Final = 38
_SUBGROUP_ID: Final = 40
_SIZE_OF: Final = {
    _WORKGROUP_ID: _NUM_WORKGROUPS,
    _LOCAL_ID: _WORKGROUP_SIZE,
    _GLOBAL_ID: _GLOBAL_SIZE,
}
"""What each number is below."""
_CHANGED: Final = frozenset({*_SIZE_OF, _SUBGROUP_ID})
_LINEAR: Final = frozenset({29, 34})
"""Built-in variables that hold numbers in one dimension, which SYCL's headers do not use."""
_LANES: Final = range(36, 45)
"""Built-in variables of sub-groups."""
_TIED_TO_LANES: Final = frozenset(
    {*GROUP_EXCHANGES, *GROUP_REDUCTIONS, *SUBGROUP_EXCHANGES, *MATRIX_PRODUCTS, 260, 259}
)

_SCALAR_BITS: Final = 32
"""Of numbers of sub-groups."""

Words = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReversedModule:
    """A module in reverse order."""

    code: bytes
    items: ItemOrder


def reordered(code: bytes) -> ReversedModule | None:
    """Return the module in reverse order; None where its numbers are not read as expected.

    Args:
        code: A well-formed module, as `parse` has found it to be.
    """
    words = list(struct.unpack(f"<{len(code) // 4}I", code))
    instructions = list(_instructions(words))
    built_ins = {
        i[1]: i[3]
        for i in instructions
        if i[0] & 0xFFFF == Op.DECORATE and len(i) > 3 and i[2] == DECORATION_BUILT_IN
    }
    opcodes = {i[0] & 0xFFFF for i in instructions}
    read = {built_ins[i[3]] for i in instructions if i[0] & 0xFFFF == Op.LOAD and i[3] in built_ins}
    if not read & _SIZE_OF.keys() or read & _LINEAR or _is_read_otherwise(instructions, built_ins):
        return None
    if _TIED_TO_LANES.isdisjoint(opcodes) and read.isdisjoint(_LANES):
        items = ItemOrder.REVERSED
    else:
        items = ItemOrder.KEPT if _orders_groups(instructions) else ItemOrder.SUB_GROUPS
    rewriter = _Rewriter(words[_BOUND], instructions, built_ins, items)
    made = rewriter.instructions()
    header = (*words[:_BOUND], rewriter.bound, *words[_BOUND + 1 : _HEADER_WORDS])
    flat = (*header, *(word for instruction in made for word in instruction))
    return ReversedModule(code=struct.pack(f"<{len(flat)}I", *flat), items=items)


def _instructions(words: Sequence[int]) -> Iterator[Words]:
    position = _HEADER_WORDS
    while position < len(words):
        count = words[position] >> 16
        yield tuple(words[position : position + count])
        position += count


def _orders_groups(instructions: Sequence[Words]) -> bool:
    """Return whether a group larger than a sub-group exchanges values in the order of its items."""
    scopes = {i[2]: i[3] for i in instructions if i[0] & 0xFFFF == Op.CONSTANT and len(i) == 4}
    for i in instructions:
        opcode = i[0] & 0xFFFF
        if opcode in (Op.GROUP_ASYNC_COPY, Op.GROUP_WAIT_EVENTS):
            return True
        if opcode not in GROUP_EXCHANGES and opcode not in GROUP_REDUCTIONS:
            continue
        is_reduced = opcode in GROUP_REDUCTIONS and i[4] == _REDUCE
        if scopes.get(i[3]) != _SUBGROUP and not is_reduced:
            return True
    return False


def _is_read_otherwise(instructions: Sequence[Words], built_ins: dict[int, int]) -> bool:
    """Return whether a variable with a number is used by anything but a plain load."""
    pointers = (Op.ACCESS_CHAIN, Op.IN_BOUNDS_ACCESS_CHAIN, Op.PTR_ACCESS_CHAIN, Op.COPY_OBJECT,
                Op.IN_BOUNDS_PTR_ACCESS_CHAIN, Op.BITCAST, Op.PTR_CAST_TO_GENERIC)  # fmt: skip
    return any(
        i[0] & 0xFFFF in pointers and built_ins.get(i[3]) in _CHANGED for i in instructions
    ) or any(
        i[0] & 0xFFFF == Op.FUNCTION_CALL and any(built_ins.get(a) in _CHANGED for a in i[4:])
        for i in instructions
    )


def _made(opcode: int, *operands: int) -> Words:
    return ((len(operands) + 1) << 16 | opcode, *operands)


class _Rewriter:
    """Makes the instructions of a reversed module.

    Args:
        bound: What all ids of the module are below.
        instructions: Of the module.
        built_ins: Numbers of built-in variables, by id.
        items: What becomes of the work-items of a group.
    """

    def __init__(
        self,
        bound: int,
        instructions: Sequence[Words],
        built_ins: dict[int, int],
        items: ItemOrder,
    ) -> None:
        self.bound = bound
        self._instructions = instructions
        self._built_ins = built_ins
        self._items = items
        self._types = {
            i[1]: i for i in instructions if i[0] & 0xFFFF in (Op.TYPE_VECTOR, Op.TYPE_POINTER)
        }
        self._declared: list[Words] = []
        """Types that the module lacks."""
        self._variables = {number: id_ for id_, number in built_ins.items()}
        self._scalar_type = 0
        """Of numbers of sub-groups; 0 until it is looked for."""
        self._pointer_to_scalar = 0
        """Of variables with one number; 0 until one is added."""
        self._added: dict[int, int] = {}
        """Ids of variables that the module lacks, by their numbers."""

    def instructions(self) -> list[Words]:
        """Return the module's instructions with every number reversed."""
        body = [made for instruction in self._instructions for made in self._rewritten(instruction)]
        return list(self._with_variables(body))

    def _rewritten(self, instruction: Words) -> list[Words]:
        opcode = instruction[0] & 0xFFFF
        number = self._built_ins.get(instruction[3]) if opcode == Op.LOAD else None
        by_sub_groups = self._items is ItemOrder.SUB_GROUPS
        is_kept = number == _LOCAL_ID and self._items is ItemOrder.KEPT
        if number not in _CHANGED or is_kept or (number == _SUBGROUP_ID and not by_sub_groups):
            return [instruction]
        head, type_id, result, variable, *access = instruction
        read = self._new_id()
        made: list[Words] = [(head, type_id, read, variable, *access)]
        if number == _SUBGROUP_ID:
            shift = self._shift_of_sub_group(made, type_id, read)
        elif number == _LOCAL_ID and by_sub_groups:
            shift = self._shift_of_item(made, instruction, read)
        elif number == _GLOBAL_ID and self._items is not ItemOrder.REVERSED:
            group = self._load(made, instruction, _WORKGROUP_ID)
            opposite = self._reversed(made, instruction, group, _NUM_WORKGROUPS)
            distance = self._new(made, Op.I_SUB, type_id, opposite, group)
            size = self._load(made, instruction, _WORKGROUP_SIZE)
            shift = self._new(made, Op.I_MUL, type_id, distance, size)
            if by_sub_groups:
                item = self._load(made, instruction, _LOCAL_ID)
                within = self._shift_of_item(made, instruction, item)
                shift = self._new(made, Op.I_ADD, type_id, shift, within)
        else:
            read = self._new(made, _NOT, type_id, read)
            shift = self._load(made, instruction, _SIZE_OF[number])
        made.append(_made(Op.I_ADD, type_id, result, read, shift))
        return made

    def _shift_of_item(self, made: list[Words], like: Words, item: int) -> int:
        """Return how far an item moves in its group: its sub-group changes and its lane does not.

        That is X - S - 2 (x - x mod S) along the first side, of X items in sub-groups of S, and
        Y - 1 - 2 y along the others; nothing where S does not divide X.
        """
        vector = like[1]
        _, _, part, count = self._types[vector]
        size = self._load(made, like, _WORKGROUP_SIZE)
        width = self._width(made, part)
        factor = self._is_whole(made, like, part, width)
        shifts = []
        for place in range(count):
            at = self._new(made, Op.COMPOSITE_EXTRACT, part, item, place)
            side = self._new(made, Op.COMPOSITE_EXTRACT, part, size, place)
            if place == 0:
                lane = self._new(made, Op.U_MOD, part, at, width)
                first = self._new(made, Op.I_SUB, part, at, lane)
                twice = self._new(made, Op.I_ADD, part, first, first)
                last = self._new(made, Op.I_SUB, part, side, width)
                shift = self._new(made, Op.I_SUB, part, last, twice)
            else:
                twice = self._new(made, Op.I_ADD, part, at, at)
                flipped = self._new(made, _NOT, part, twice)
                shift = self._new(made, Op.I_ADD, part, side, flipped)
            shifts.append(self._new(made, Op.I_MUL, part, shift, factor))
        return self._new(made, Op.COMPOSITE_CONSTRUCT, vector, *shifts)

    def _shift_of_sub_group(self, made: list[Words], type_id: int, read: int) -> int:
        """Return how far a sub-group's number moves: N - 1 - 2 id, or nothing as its items do."""
        like = next(
            i
            for i in self._instructions
            if i[0] & 0xFFFF == Op.LOAD and self._built_ins.get(i[3]) in _SIZE_OF
        )
        _, _, part, _ = self._types[like[1]]
        factor = self._is_whole(made, like, part, self._width(made, part))
        if part != type_id:
            factor = self._new(made, Op.U_CONVERT, type_id, factor)
        twice = self._new(made, Op.I_ADD, type_id, read, read)
        flipped = self._new(made, _NOT, type_id, twice)
        count = self._new(made, Op.LOAD, type_id, self._scalar_variable(_NUM_SUBGROUPS))
        shift = self._new(made, Op.I_ADD, type_id, count, flipped)
        return self._new(made, Op.I_MUL, type_id, shift, factor)

    def _width(self, made: list[Words], part: int) -> int:
        """Load how many items a sub-group has."""
        scalar = self._scalar()
        width = self._new(made, Op.LOAD, scalar, self._scalar_variable(_SUBGROUP_MAX_SIZE))
        return width if scalar == part else self._new(made, Op.U_CONVERT, part, width)

    def _is_whole(self, made: list[Words], like: Words, part: int, width: int) -> int:
        """Return 1 where sub-groups divide a group's first side, else 0: X / S * S / X."""
        size = self._load(made, like, _WORKGROUP_SIZE)
        side = self._new(made, Op.COMPOSITE_EXTRACT, part, size, 0)
        count = self._new(made, Op.U_DIV, part, side, width)
        whole = self._new(made, Op.I_MUL, part, count, width)
        return self._new(made, Op.U_DIV, part, whole, side)

    def _scalar(self) -> int:
        if not self._scalar_type:
            found = (
                i[1]
                for i in self._instructions
                if i[0] & 0xFFFF == Op.TYPE_INT and i[2] == _SCALAR_BITS
            )
            self._scalar_type = next(found, 0)
        if not self._scalar_type:
            self._scalar_type = self._new_id()
            self._declared.append(_made(Op.TYPE_INT, self._scalar_type, _SCALAR_BITS, 0))
        return self._scalar_type

    def _scalar_variable(self, number: int) -> int:
        if not self._pointer_to_scalar:
            self._pointer_to_scalar = self._new_id()
            kind = (self._pointer_to_scalar, StorageClass.INPUT, self._scalar())
            self._declared.append(_made(Op.TYPE_POINTER, *kind))
        return self._variable(number)

    def _reversed(self, made: list[Words], like: Words, value: int, size: int) -> int:
        flipped = self._new(made, _NOT, like[1], value)
        return self._new(made, Op.I_ADD, like[1], self._load(made, like, size), flipped)

    def _load(self, made: list[Words], like: Words, number: int) -> int:
        """Load another number as `like` loads its own."""
        result = self._new_id()
        made.append((like[0], like[1], result, self._variable(number), *like[4:]))
        return result

    def _new(self, made: list[Words], opcode: int, type_id: int, *operands: int) -> int:
        result = self._new_id()
        made.append(_made(opcode, type_id, result, *operands))
        return result

    def _new_id(self) -> int:
        self.bound += 1
        return self.bound - 1

    def _variable(self, number: int) -> int:
        found = self._variables.get(number) or self._added.get(number)
        if found is None:
            found = self._added[number] = self._new_id()
        return found

    def _with_variables(self, body: Sequence[Words]) -> Iterator[Words]:
        """Yield `body` with the variables that it lacks: decorated, declared and in interfaces."""
        is_decorated = is_declared = False
        for instruction in body:
            opcode = instruction[0] & 0xFFFF
            if opcode == Op.DECORATE and not is_decorated:
                is_decorated = True
                for number, id_ in self._added.items():
                    yield _made(Op.DECORATE, id_, DECORATION_BUILT_IN, number)
            if opcode == Op.ENTRY_POINT and self._added:
                length = (instruction[0] >> 16) + len(self._added)
                yield (length << 16 | opcode, *instruction[1:], *self._added.values())
                continue
            if opcode == Op.FUNCTION and not is_declared:
                is_declared = True
                yield from self._declared
                for number, id_ in self._added.items():
                    pointer = self._pointer_to_scalar if number in _LANES else self._pointer()
                    yield _made(Op.VARIABLE, pointer, id_, StorageClass.INPUT)
            yield instruction

    def _pointer(self) -> int:
        """The type of variables with three numbers."""
        return next(
            i[1]
            for i in self._instructions
            if i[0] & 0xFFFF == Op.VARIABLE and self._built_ins.get(i[2]) in _SIZE_OF
        )
