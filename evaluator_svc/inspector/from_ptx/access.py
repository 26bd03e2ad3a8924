"""Memory accesses of a PTX kernel, found by walking it and the functions that it calls."""

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from evaluator_svc.inspector.access import Access
from evaluator_svc.inspector.from_ptx.values import AbstractValue, Values, integer, space_of
from evaluator_svc.inspector.lowered_program import Body, LoweredProgram, Space
from evaluator_svc.inspector.stride import VARIES, Stride
from evaluator_svc.ptx import Function, Instruction, Module
from evaluator_svc.ptx.module import names_in

_MAX_CALL_DEPTH: Final = 6
_MAX_INSTRUCTIONS: Final = 100_000
"""Looked at in one kernel; what lies beyond counts as not there."""
_BULK_BYTES: Final = 16
"""Granule of bulk and matrix accesses, which a group makes together and without gaps."""

_SCALAR_BYTES: Final = 4
_SECTOR_BYTES: Final = 32
"""Least that moves between memory and chip."""
_MATRIX_ACCESSES: Final = (("wmma", "load"), ("wmma", "store"))

_BY_DESCRIPTOR: Final = ("wgmma", "tcgen05")
"""They read shared memory by descriptors, which are no addresses."""
_SPACES: Final = {"global": Space.GLOBAL, "shared": Space.GROUP, "": Space.GENERIC}


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the walk is."""

    module: Module
    loops: tuple[Hashable, ...]


def accesses(
    module: Module, program: LoweredProgram[Instruction]
) -> tuple[tuple[Access, ...], ...]:
    """Return every load and store of each kernel, those of called functions included."""
    walks = (_Walk(module, program).function(kernel, {}, (), 0) for kernel in program.kernels)
    return tuple(tuple(walk) for walk in walks)


class _Views:
    """The known facts about a function's registers, for accesses of each width.

    The wider an access, the fewer neighbours make a whole sector of memory.
    """

    def __init__(
        self, module: Module, function: Function, arguments: Mapping[str, AbstractValue]
    ) -> None:
        self._subject = (module, function, arguments)
        self.values = Values(module, function, arguments)
        self._wide: dict[int, Values] = {}

    def of_address(self, operand: str, size_bytes: int) -> AbstractValue:
        """Return the known facts about the address of an access."""
        address = self.values.of_address(operand)
        if address.stride is not VARIES or size_bytes <= _SCALAR_BYTES:
            return address
        run = max(2, _SECTOR_BYTES // size_bytes)
        if run not in self._wide:
            self._wide[run] = Values(*self._subject, shortest_run=run)
        return self._wide[run].of_address(operand)


class _Walk:
    def __init__(self, module: Module, program: LoweredProgram[Instruction]) -> None:
        self._module = module
        self._program = program
        self._left = _MAX_INSTRUCTIONS

    def function(
        self,
        body: Body[Instruction],
        arguments: Mapping[str, AbstractValue],
        around: tuple[Hashable, ...],
        call_depth: int,
    ) -> Iterator[Access]:
        """Iterate over a function's accesses; `around` are the loops of its callers."""
        function = self._module.functions[str(body.name)]
        self._left -= len(function.body)
        if call_depth > _MAX_CALL_DEPTH or self._left < 0:
            return
        views = _Views(self._module, function, arguments)
        for number in body.blocks:
            own = ((body.name, loop.header) for loop in body.around(number))
            place = _Place(self._module, (*around, *own))
            for instruction in body.instructions(number):
                if instruction.opcode == "call":
                    yield from self._call(instruction, views.values, place, call_depth)
                else:
                    yield from _accesses(instruction, views, place)

    def _call(
        self, call: Instruction, values: Values, place: _Place, call_depth: int
    ) -> Iterator[Access]:
        callee = next(
            (f for o in call.operands if (f := self._module.functions.get(o)) is not None), None
        )
        if callee is None or callee.is_declaration:
            return
        given = names_in(call.operands[-1]) if call.operands[-1].startswith("(") else ()
        passed = (values.argument(name) for name in given)
        arguments = dict(zip(callee.parameters, passed, strict=False))
        body = self._program.functions[callee.name]
        yield from self.function(body, arguments, place.loops, call_depth + 1)


def _accesses(instruction: Instruction, views: _Views, place: _Place) -> Iterator[Access]:
    opcode, operands = instruction.opcode, instruction.operands
    if opcode in _BY_DESCRIPTOR:
        yield from _one(instruction, place, space="shared", is_store=False)
    if len(operands) < 2:
        return
    if opcode in ("ld", "ldu", "st"):
        is_store = opcode == "st"
        size_bytes = instruction.size_bytes
        address = views.of_address(operands[0 if is_store else 1], size_bytes)
        yield from _one(
            instruction,
            place,
            space=space_of(instruction) or address.space,
            is_store=is_store,
            stride=address.stride,
            size_bytes=size_bytes,
            is_copy=is_store and any(views.values.of(n).is_loaded for n in names_in(operands[1])),
        )
    elif opcode == "cp" and "async" in instruction.parts:
        yield from _copied(instruction, views, place)
    elif opcode in ("ldmatrix", "stmatrix") or instruction.parts[:2] in _MATRIX_ACCESSES:
        is_store = opcode == "stmatrix" or "store" in instruction.parts
        yield from _one(instruction, place, space=space_of(instruction), is_store=is_store)


def _copied(instruction: Instruction, views: _Views, place: _Place) -> Iterator[Access]:
    """Iterate over both ends of an asynchronous copy."""
    spaces = [p.partition("::")[0] for p in instruction.parts]
    ends = [space for space in spaces if space in _SPACES and space]
    if len(ends) < 2:
        return
    if "bulk" in instruction.parts:
        yield from _one(instruction, place, space=ends[1], is_store=False)
        yield from _one(instruction, place, space=ends[0], is_store=True, is_copy=True)
        return
    size = integer(instruction.operands[2]) if len(instruction.operands) > 2 else None
    size_bytes = size or _SCALAR_BYTES
    for operand, space, is_store in zip(
        instruction.operands[1::-1], (ends[1], ends[0]), (False, True), strict=True
    ):
        yield from _one(
            instruction,
            place,
            space=space,
            is_store=is_store,
            stride=views.of_address(operand, size_bytes).stride,
            size_bytes=size_bytes,
            is_copy=is_store,
        )


def _one(
    instruction: Instruction,
    place: _Place,
    *,
    space: str,
    is_store: bool,
    stride: Stride = _BULK_BYTES,
    size_bytes: int = _BULK_BYTES,
    is_copy: bool = False,
) -> Iterator[Access]:
    found = _SPACES.get(space)
    if found is None:
        return  # parameters, constants, the stack
    yield Access(
        space=found,
        is_store=is_store,
        stride=stride,
        size_bytes=size_bytes,
        lanes=max(instruction.lanes, size_bytes // 4),
        depth=len(place.loops),
        outermost_loop=place.loops[0] if place.loops else None,
        is_copy=is_copy,
        place=instruction.location,
        line=place.module.source_line(instruction.location),
    )
