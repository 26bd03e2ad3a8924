"""Memory accesses of a PTX kernel.

Walks a kernel and the functions that it calls. Knows nothing of levels.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from evaluator_svc.inspector.access import Access
from evaluator_svc.inspector.from_ptx.flow import control_flow
from evaluator_svc.inspector.from_ptx.values import Value, Values, integer, space_of
from evaluator_svc.inspector.stride import VARIES, Stride
from evaluator_svc.ptx import Function, Instruction, Location, Module
from evaluator_svc.ptx.module import names_in
from evaluator_svc.spirv.opcodes import StorageClass

_MAX_CALL_DEPTH: Final = 6
_MAX_INSTRUCTIONS: Final = 100_000
"""Looked at in one kernel; what lies beyond counts as not there."""
_BULK_BYTES: Final = 16
"""Granule of bulk and matrix accesses, which a group makes together and without gaps."""

_SCALAR_BYTES: Final = 4
_SECTOR_BYTES: Final = 32
"""Least that moves between memory and chip."""
_MATRIX_ACCESSES: Final = (("wmma", "load"), ("wmma", "store"))

STORAGE: Final = {
    "global": StorageClass.CROSS_WORKGROUP,
    "shared": StorageClass.WORKGROUP,
    "": StorageClass.GENERIC,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PtxAccess(Access):
    """An access and what is known beyond it."""

    is_copy: bool
    """Stores what was loaded from global memory, unchanged."""
    location: Location | None


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the walk is."""

    function: str
    loops: tuple[tuple[str, int], ...]


def accesses(module: Module, kernel: Function) -> tuple[PtxAccess, ...]:
    """Return every load and store of a kernel, those of called functions included."""
    return tuple(_Walk(module).function(kernel, {}, (), 0))


class _Views:
    """What is known of a function's registers, for accesses of each width.

    The wider an access, the fewer neighbours make a whole sector of memory.

    Args:
        module: Where the function is from.
        function: The function.
        arguments: What is known of its parameters.
    """

    def __init__(self, module: Module, function: Function, arguments: Mapping[str, Value]) -> None:
        self._subject = (module, function, arguments)
        self.values = Values(module, function, arguments)
        self._wide: dict[int, Values] = {}

    def of_address(self, operand: str, size_bytes: int) -> Value:
        """Return what is known of the address of an access."""
        address = self.values.of_address(operand)
        if address.stride is not VARIES or size_bytes <= _SCALAR_BYTES:
            return address
        run = max(2, _SECTOR_BYTES // size_bytes)
        if run not in self._wide:
            self._wide[run] = Values(*self._subject, shortest_run=run)
        return self._wide[run].of_address(operand)


class _Walk:
    def __init__(self, module: Module) -> None:
        self._module = module
        self._left = _MAX_INSTRUCTIONS

    def function(
        self,
        function: Function,
        arguments: Mapping[str, Value],
        around: tuple[tuple[str, int], ...],
        call_depth: int,
    ) -> Iterator[PtxAccess]:
        """Iterate over a function's accesses; `around` are the loops of its callers."""
        self._left -= len(function.body)
        if call_depth > _MAX_CALL_DEPTH or self._left < 0:
            return
        views = _Views(self._module, function, arguments)
        flow = control_flow(function)
        for number, block in flow.blocks.items():
            own = ((function.name, loop.header) for loop in flow.around(number))
            place = _Place(function.name, (*around, *own))
            for instruction in block:
                if instruction.opcode == "call":
                    yield from self._call(instruction, views.values, place, call_depth)
                else:
                    yield from _accesses(instruction, views, place)

    def _call(
        self, call: Instruction, values: Values, place: _Place, call_depth: int
    ) -> Iterator[PtxAccess]:
        callee = next(
            (f for o in call.operands if (f := self._module.functions.get(o)) is not None), None
        )
        if callee is None or callee.is_declaration:
            return
        given = names_in(call.operands[-1]) if call.operands[-1].startswith("(") else ()
        passed = (values.argument(name) for name in given)
        arguments = dict(zip(callee.parameters, passed, strict=False))
        yield from self.function(callee, arguments, place.loops, call_depth + 1)


def _accesses(instruction: Instruction, views: _Views, place: _Place) -> Iterator[PtxAccess]:
    opcode, operands = instruction.opcode, instruction.operands
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


def _copied(instruction: Instruction, views: _Views, place: _Place) -> Iterator[PtxAccess]:
    """Iterate over both ends of an asynchronous copy."""
    spaces = [p.partition("::")[0] for p in instruction.parts]
    ends = [space for space in spaces if space in STORAGE and space]
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
) -> Iterator[PtxAccess]:
    storage = STORAGE.get(space)
    if storage is None:
        return  # parameters, constants, the stack
    yield PtxAccess(
        storage=storage,
        is_store=is_store,
        stride=stride,
        size_bytes=size_bytes,
        lanes=max(instruction.lanes, size_bytes // 4),
        depth=len(place.loops),
        outermost_loop=place.loops[0] if place.loops else None,
        is_copy=is_copy,
        location=instruction.location,
    )
