"""A SPIR-V module whose work-groups and work-items run in reverse order, as far as they can tell.

No SYCL runtime lets a caller choose the order. So every work-group asks for its number and gets
that of its opposite: N - 1 - id for id, which is N + ~id. The runtime's first group does the work
of the last one. Work-items of a group likewise, unless the kernel exchanges values within
sub-groups or groups by lane, whose numbers are tied to the hardware. A program that is right
under SYCL's rules gives the same.
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from evaluator_svc.spirv.opcodes import (
    DECORATION_BUILT_IN,
    GROUP_EXCHANGES,
    GROUP_REDUCTIONS,
    MATRIX_PRODUCTS,
    SUBGROUP_EXCHANGES,
    Op,
)

_HEADER_WORDS: Final = 5
_BOUND: Final = 3
"""Word of the header that all ids are below."""
_NOT: Final = 200
_NUM_WORKGROUPS: Final = 24
_WORKGROUP_SIZE: Final = 25
_WORKGROUP_ID: Final = 26
_LOCAL_ID: Final = 27
_GLOBAL_ID: Final = 28
_GLOBAL_SIZE: Final = 31
_SIZE_OF: Final = {
    _WORKGROUP_ID: _NUM_WORKGROUPS,
    _LOCAL_ID: _WORKGROUP_SIZE,
    _GLOBAL_ID: _GLOBAL_SIZE,
}
"""What each number is below."""
_LINEAR: Final = frozenset({29, 34})
"""Built-in variables that hold numbers in one dimension, which SYCL's headers do not use."""
_LANES: Final = range(36, 45)
"""Built-in variables of sub-groups."""
_TIED_TO_LANES: Final = frozenset(
    {*GROUP_EXCHANGES, *GROUP_REDUCTIONS, *SUBGROUP_EXCHANGES, *MATRIX_PRODUCTS, 260, 259}
)

Words = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReversedModule:
    """A module in reverse order."""

    code: bytes
    reverses_items: bool
    """Whether the work-items of a group are reversed, too."""


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
    reverses_items = _TIED_TO_LANES.isdisjoint(opcodes) and read.isdisjoint(_LANES)
    rewriter = _Rewriter(words[_BOUND], instructions, built_ins, reverses_items=reverses_items)
    made = rewriter.instructions()
    header = (*words[:_BOUND], rewriter.bound, *words[_BOUND + 1 : _HEADER_WORDS])
    flat = (*header, *(word for instruction in made for word in instruction))
    return ReversedModule(code=struct.pack(f"<{len(flat)}I", *flat), reverses_items=reverses_items)


def _instructions(words: Sequence[int]) -> Iterator[Words]:
    position = _HEADER_WORDS
    while position < len(words):
        count = words[position] >> 16
        yield tuple(words[position : position + count])
        position += count


def _is_read_otherwise(instructions: Sequence[Words], built_ins: dict[int, int]) -> bool:
    """Return whether a variable with a number is used by anything but a plain load."""
    pointers = (Op.ACCESS_CHAIN, Op.IN_BOUNDS_ACCESS_CHAIN, Op.PTR_ACCESS_CHAIN, Op.COPY_OBJECT,
                Op.IN_BOUNDS_PTR_ACCESS_CHAIN, Op.BITCAST, Op.PTR_CAST_TO_GENERIC)  # fmt: skip
    return any(
        i[0] & 0xFFFF in pointers and built_ins.get(i[3]) in _SIZE_OF for i in instructions
    ) or any(
        i[0] & 0xFFFF == Op.FUNCTION_CALL and any(built_ins.get(a) in _SIZE_OF for a in i[4:])
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
        reverses_items: Whether work-items are reversed within their group.
    """

    def __init__(
        self,
        bound: int,
        instructions: Sequence[Words],
        built_ins: dict[int, int],
        *,
        reverses_items: bool,
    ) -> None:
        self.bound = bound
        self._instructions = instructions
        self._built_ins = built_ins
        self._reverses_items = reverses_items
        self._variables = {number: id_ for id_, number in built_ins.items()}
        self._added: dict[int, int] = {}
        """Ids of variables that the module lacks, by their numbers."""

    def instructions(self) -> list[Words]:
        """Return the module's instructions with every number reversed."""
        body = [made for instruction in self._instructions for made in self._rewritten(instruction)]
        return list(self._with_variables(body))

    def _rewritten(self, instruction: Words) -> list[Words]:
        opcode = instruction[0] & 0xFFFF
        number = self._built_ins.get(instruction[3]) if opcode == Op.LOAD else None
        if number not in _SIZE_OF or (number == _LOCAL_ID and not self._reverses_items):
            return [instruction]
        head, type_id, result, variable, *access = instruction
        read = self._new_id()
        made: list[Words] = [(head, type_id, read, variable, *access)]
        if number == _GLOBAL_ID and not self._reverses_items:
            group = self._load(made, instruction, _WORKGROUP_ID)
            opposite = self._reversed(made, instruction, group, _NUM_WORKGROUPS)
            distance = self._new(made, Op.I_SUB, type_id, opposite, group)
            size = self._load(made, instruction, _WORKGROUP_SIZE)
            moved = self._new(made, Op.I_MUL, type_id, distance, size)
            made.append(_made(Op.I_ADD, type_id, result, read, moved))
            return made
        flipped = self._new(made, _NOT, type_id, read)
        size = self._load(made, instruction, _SIZE_OF[number])
        made.append(_made(Op.I_ADD, type_id, result, size, flipped))
        return made

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
            yield instruction
            is_model = opcode == Op.VARIABLE and self._built_ins.get(instruction[2]) in _SIZE_OF
            if is_model and not is_declared:
                is_declared = True
                for id_ in self._added.values():
                    yield (instruction[0], instruction[1], id_, *instruction[3:])
