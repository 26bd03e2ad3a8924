"""How a value changes from one work-item to its neighbour in x.

An abstract interpretation: a value is uniform (0), goes up by a constant, or varies in a way that
is not constant. Quotients and remainders by at least eight count as what they are within a run,
since a tile's indices are made of them. Knows nothing of memory.
"""

from collections.abc import Callable, Mapping
from typing import Final

from evaluator_svc.spirv.opcodes import BuiltIn, Op

VARIES: Final = None
"""Differs from neighbour to neighbour by no constant."""

Stride = int | None
"""Difference between neighbours, or `VARIES`."""

LANE_BUILT_INS: Final = {
    BuiltIn.LOCAL_INVOCATION_ID,
    BuiltIn.GLOBAL_INVOCATION_ID,
    BuiltIn.LOCAL_INVOCATION_INDEX,
    BuiltIn.GLOBAL_LINEAR_ID,
    BuiltIn.SUBGROUP_LOCAL_INVOCATION_ID,
}
"""Work-item queries whose first component goes up by one from neighbour to neighbour."""

_SHORTEST_RUN: Final = 8
"""Neighbours that a quotient must keep together to count as uniform."""

KEEPS_STRIDE: Final = frozenset(
    {
        *(Op.COPY_OBJECT, Op.U_CONVERT, Op.S_CONVERT, Op.BITCAST, Op.CONVERT_PTR_TO_U),
        *(Op.CONVERT_U_TO_PTR, Op.PTR_CAST_TO_GENERIC, Op.GENERIC_CAST_TO_PTR),
        Op.GENERIC_CAST_TO_PTR_EXPLICIT,
    }
)


def merged(a: Stride, b: Stride) -> Stride:
    """Return the stride of a value that is one of two, such as a guarded index."""
    if b in (a, 0):
        return a
    return b if a == 0 else VARIES


def added(a: Stride, b: Stride) -> Stride:
    """Return the stride of a sum."""
    return VARIES if a is None or b is None else a + b


def multiplied(a: Stride, b: Stride, constants: tuple[int | None, int | None]) -> Stride:
    """Return the stride of a product; `constants` are the factors' values where known."""
    if a == 0 and b == 0:
        return 0
    if a is None or b is None:
        return VARIES
    if constants[1] is not None:
        return a * constants[1]
    return b * constants[0] if constants[0] is not None else VARIES


def _left(a: Stride, b: Stride, constants: tuple[int | None, int | None]) -> Stride:
    shift = constants[1]
    if a is None or shift is None or shift > 63:
        return 0 if a == 0 and b == 0 else VARIES
    return a << shift


def _divided(a: Stride, b: Stride, run: int | None) -> Stride:
    if a == 0 and b == 0:
        return 0
    long = run is None or run >= _SHORTEST_RUN
    return 0 if a in (1, -1) and b == 0 and long else VARIES


def _remainder(a: Stride, b: Stride, run: int | None) -> Stride:
    if a == 0 and b == 0:
        return 0
    return a if b == 0 and (run is None or run >= _SHORTEST_RUN) else VARIES


def _masked(a: Stride, b: Stride, constants: tuple[int | None, int | None]) -> Stride:
    mask = constants[1]
    if mask is None or mask & (mask + 1):
        return 0 if a == 0 and b == 0 else VARIES
    return _remainder(a, b, mask + 1)


def _shifted(a: Stride, b: Stride, constants: tuple[int | None, int | None]) -> Stride:
    shift = constants[1]
    return _divided(a, b, None if shift is None else 1 << min(shift, 63))


_Rule = Callable[[Stride, Stride, tuple[int | None, int | None]], Stride]

BINARY: Final[Mapping[int, _Rule]] = {
    Op.I_ADD: lambda a, b, _: added(a, b),
    Op.BITWISE_OR: lambda a, b, _: added(a, b),  # as compilers write sums of disjoint bits
    Op.I_SUB: lambda a, b, _: added(a, None if b is None else -b),
    Op.I_MUL: multiplied,
    Op.SHIFT_LEFT_LOGICAL: _left,
    Op.SHIFT_RIGHT_LOGICAL: _shifted,
    Op.SHIFT_RIGHT_ARITHMETIC: _shifted,
    Op.U_DIV: lambda a, b, c: _divided(a, b, c[1]),
    Op.S_DIV: lambda a, b, c: _divided(a, b, c[1]),
    Op.U_MOD: lambda a, b, c: _remainder(a, b, c[1]),
    Op.S_REM: lambda a, b, c: _remainder(a, b, c[1]),
    Op.S_MOD: lambda a, b, c: _remainder(a, b, c[1]),
    Op.BITWISE_AND: _masked,
}
"""Stride of a result from those of two operands."""
