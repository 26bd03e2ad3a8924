"""Sizes of tensors: a number in each workload, and one text in the plan for all of them."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from generator_svc.recipes.unsupported import RecipeUnsupported

_NEAR: Final = 1e-12
"""Relative difference that rounding explains: a square root may be a power in the plan."""


@dataclass(frozen=True, slots=True)
class SymbolicSize:
    """A whole number that may differ between workloads."""

    values: tuple[int, ...]
    """In each workload."""
    base: str
    """How the plan computes it, less `offset`, from the sizes of named tensors; "": not at all."""
    offset: int = 0
    """What is added."""

    @property
    def text(self) -> str:
        """How the plan computes it."""
        if not self.base:
            return str(self.offset)
        sign = "+" if self.offset > 0 else "-"
        return f"({self.base} {sign} {abs(self.offset)})" if self.offset else self.base

    @property
    def is_literal(self) -> bool:
        """Whether it is the same number in every workload by its text."""
        return not self.base

    @property
    def is_one(self) -> bool:
        """Whether it is 1 in every workload."""
        return all(value == 1 for value in self.values)

    def __add__(self, other: "SymbolicSize | int") -> "SymbolicSize":
        return self._with("+", other, lambda a, b: a + b)

    def __sub__(self, other: "SymbolicSize | int") -> "SymbolicSize":
        return self._with("-", other, lambda a, b: a - b)

    def __mul__(self, other: "SymbolicSize | int") -> "SymbolicSize":
        return self._with("*", other, lambda a, b: a * b)

    def __floordiv__(self, other: "SymbolicSize | int") -> "SymbolicSize":
        return self._with("//", other, lambda a, b: a // b)

    def up_to(self, divisor: "SymbolicSize | int") -> "SymbolicSize":
        """Return the quotient, rounded up."""
        return (self + divisor - 1) // divisor

    def _with(
        self, sign: str, other: "SymbolicSize | int", call: Callable[[int, int], int]
    ) -> "SymbolicSize":
        count = len(self.values)
        right = fixed(other, count) if isinstance(other, int) else other
        values = tuple(call(a, b) for a, b in zip(self.values, right.values, strict=True))
        if right.is_literal and (self.is_literal or sign in "+-"):
            return SymbolicSize(values, self.base, call(self.offset, right.offset))
        if right.text == "1" and sign in ("*", "//"):
            return self
        if (self.text, sign) in (("0", "+"), ("1", "*")):
            return right
        return SymbolicSize(values, f"({self.text} {sign} {right.text})")


@dataclass(frozen=True, slots=True)
class SizeNumber:
    """A number of floating point that follows from a size, such as the root of a head's width."""

    text: str
    """How the plan computes it."""
    is_literal: ClassVar[bool] = False


PlanNumber = SymbolicSize | SizeNumber
Shape = tuple[SymbolicSize, ...]


def fixed(number: int, workloads: int) -> SymbolicSize:
    """Return a size that is `number` in every workload."""
    return SymbolicSize((number,) * workloads, "", number)


def product(sizes: Iterable[SymbolicSize], one: SymbolicSize) -> SymbolicSize:
    """Return the product of `sizes`."""
    return math.prod(sizes, start=one)


def count_of(shape: Shape) -> SymbolicSize:
    """Return the elements of a shape that has a dimension."""
    return product(shape[1:], shape[0])


def found_in(values: tuple[int, ...], known: Sequence[SymbolicSize]) -> SymbolicSize:
    """Return a size of these values.

    It is a constant, one of `known`, a multiple or a part of one, or the product of two.

    Raises:
        RecipeUnsupported: there is none, so that it would have to be a constant of each workload.
    """
    if len(set(values)) == 1:
        return fixed(values[0], len(values))
    products = [a * b for i, a in enumerate(known) for b in known[i:]]
    for size in (*known, *products):
        if size.values == values:
            return size
    for size in known:
        own, wanted = size.values[0], values[0]
        if min(own, wanted) > 0:
            scaled = size * (wanted // own) if wanted >= own else size // (own // wanted)
            if scaled.values == values:
                return scaled
    raise RecipeUnsupported(f"a constant that depends on the sizes, {values}")


_POWERS: Final = (1.0, -1.0, 0.5, -0.5, 2.0, -2.0)
"""Powers of a size that references divide and multiply by, the likeliest first."""


def number_from(values: tuple[float, ...], known: Sequence[SymbolicSize]) -> SizeNumber:
    """Return a number of these values, which differ between workloads.

    It is a power of one of `known`, or of the product of two, times a constant.

    Raises:
        RecipeUnsupported: there is no such size.
    """
    products = [a * b for i, a in enumerate(known) for b in known[i:]]
    found: list[tuple[SymbolicSize, float, float]] = []
    for size in (*known, *products):
        for power in _POWERS if min(size.values) > 0 else ():
            factors = [v / s**power for v, s in zip(values, size.values, strict=True)]
            if all(math.isclose(factor, factors[0], rel_tol=_NEAR) for factor in factors):
                found.append((size, power, factors[0]))
    if not found or not all(math.isfinite(value) for value in values):
        raise RecipeUnsupported(f"a constant that depends on the sizes, {values}")
    # Without a factor it is more likely what the reference says.
    size, power, factor = min(found, key=lambda f: not math.isclose(f[2], 1.0, rel_tol=_NEAR))
    text = f"{size.text} ** {power!r}" if power > 0 else f"{size.text} ** ({power!r})"
    return SizeNumber(text if math.isclose(factor, 1.0, rel_tol=_NEAR) else f"{factor!r} * {text}")


def same(one: Shape, other: Shape) -> bool:
    """Return whether two shapes are equal in every workload."""
    return [size.values for size in one] == [size.values for size in other]
