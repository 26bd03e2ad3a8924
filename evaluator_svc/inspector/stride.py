"""How a value changes from one work-item to its neighbour in x.

An abstract interpretation: a value is uniform (0), goes up by a constant, or varies in a way that
is not constant. Quotients and remainders by enough count as what they are within a run, since a
tile's indices are made of them.
"""

from collections.abc import Callable
from typing import Final

VARIES: Final = None
"""Differs from neighbour to neighbour by no constant."""

Stride = int | None
"""Difference between neighbours, or `VARIES`."""

SHORTEST_RUN: Final = 8
"""Neighbours that must stay together: 32 bytes of numbers of four bytes each."""

Rule = Callable[[Stride, Stride, tuple[int | None, int | None]], Stride]
"""Stride of a result from those of two operands, and from their values where known."""


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


def left_shifted(a: Stride, b: Stride, constants: tuple[int | None, int | None]) -> Stride:
    """Return the stride of a value shifted up."""
    shift = constants[1]
    if a is None or shift is None or shift > 63:
        return 0 if a == 0 and b == 0 else VARIES
    return a << shift


def summed(a: Stride, b: Stride, _: tuple[int | None, int | None]) -> Stride:
    """Return the stride of a sum, or of a bitwise or, as compilers write sums of disjoint bits."""
    return added(a, b)


def subtracted(a: Stride, b: Stride, _: tuple[int | None, int | None]) -> Stride:
    """Return the stride of a difference."""
    return added(a, None if b is None else -b)


class Runs:
    """Rules for quotients and remainders, which tell neighbours apart in runs.

    Args:
        shortest: Neighbours that a run must hold to count as all there is.
    """

    def __init__(self, shortest: int = SHORTEST_RUN) -> None:
        self._shortest = shortest

    def divided(self, a: Stride, b: Stride, constants: tuple[int | None, int | None]) -> Stride:
        """Return the stride of a quotient: neighbours mostly share it when the run is long."""
        return self.quotient(a, b, constants[1])

    def quotient(self, a: Stride, b: Stride, divisor: int | None) -> Stride:
        """Return the stride of a quotient by a number that may be known."""
        if a == 0 and b == 0:
            return 0
        if b == 0 and a is not None and divisor and a % divisor == 0:
            return a // divisor
        return 0 if b == 0 and self._is_run(a, divisor) else VARIES

    def remainder(self, a: Stride, b: Stride, constants: tuple[int | None, int | None]) -> Stride:
        """Return the stride of a remainder: within a run, that of the number itself."""
        if a == 0 and b == 0:
            return 0
        if b == 0 and a is not None and constants[1] and a % constants[1] == 0:
            return 0
        return a if b == 0 and self._is_run(a, constants[1]) else VARIES

    def masked(self, a: Stride, b: Stride, constants: tuple[int | None, int | None]) -> Stride:
        """Return the stride of a bitwise and: a remainder, a multiple rounded down, or both."""
        mask = constants[1]
        if a == 0 and b == 0:
            return 0
        if b != 0 or not mask:
            return VARIES
        lowest = mask & -mask
        above = mask + lowest  # a power of two when the mask's ones stand together
        if above & (above - 1):
            return VARIES
        within = a if mask < 0 else self.remainder(a, b, (None, above))
        if within is None or lowest == 1 or within % lowest == 0:
            return within
        return 0 if self._is_run(within, lowest) else VARIES

    def right_shifted(
        self, a: Stride, b: Stride, constants: tuple[int | None, int | None]
    ) -> Stride:
        """Return the stride of a value shifted down."""
        shift = constants[1]
        return self.quotient(a, b, None if shift is None else 1 << min(shift, 63))

    def _is_run(self, a: Stride, length: int | None) -> bool:
        """Return whether enough neighbours lie between two multiples of `length`."""
        if a is None:
            return False
        return abs(a) <= 1 if length is None else abs(length) >= self._shortest * abs(a)
