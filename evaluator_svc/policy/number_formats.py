"""The narrow number formats that object code computes in, and the note about them.

They are facts and decide nothing: a product split into several narrow ones may be as exact as a
wide one. `evaluator_svc.inspector` finds the formats, in `from_ptx` and `from_spirv`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Self

from evaluator_svc.policy.finding import rule_finding
from kernel_foundry.domain.finding import Finding

FLOAT16: Final = "float16"
BFLOAT16: Final = "bfloat16"
TF32: Final = "TF32"
INT8: Final = "int8"
FLOAT64: Final = "float64"
FLOAT8: Final = "float8"
"""All float formats of eight bits or fewer."""
ROUGH_TANH: Final = "tanh.approx"
"""The hardware's hyperbolic tangent, of 11 bits; its other float32 functions have 20 and more."""
NARROW_FORMATS: Final = (BFLOAT16, FLOAT16, FLOAT8, INT8, TF32)


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectFacts:
    """Number formats and units that a candidate's object code computes with."""

    formats: tuple[str, ...] = ()
    """Formats narrower than float32 that it converts to or computes in, sorted: "bfloat16",
    "float16", "float8", "TF32"; "int8" where it adds up products of bytes outside matrix units."""
    uses_matrix_units: bool = False
    matrix_formats: tuple[str, ...] = ()
    """Formats of the operands of matrix units, sorted; int8 and float64 among them."""
    products_of_a_step: int = 0
    """Narrow products that matrix units add up for one wide product; 0: not known."""
    rough_functions: tuple[str, ...] = ()
    """Instructions for functions of float32 whose results have far fewer bits: "tanh.approx"."""
    masks_low_bits: bool = False
    """Whether low bits of 32-bit words are cut off, as a float32's are to shorten it."""

    @property
    def narrow_products(self) -> tuple[str, ...]:
        """Formats of fewer bits than float32's in which a float32 product may be computed."""
        of_units = INT8 in self.matrix_formats and INT8 not in self.formats
        return (*self.formats, INT8) if of_units else self.formats

    @property
    def products_of_8_bits(self) -> tuple[str, ...]:
        """Formats of 8 bits in which a 16-bit product may be computed."""
        return tuple(name for name in self.narrow_products if name in (FLOAT8, INT8))

    @classmethod
    def of_all(cls, units: "Sequence[Self]") -> Self:
        """The facts of several translation units of one candidate, taken together."""
        products = {unit.products_of_a_step for unit in units if unit.matrix_formats}
        return cls(
            formats=tuple(sorted({name for unit in units for name in unit.formats})),
            uses_matrix_units=any(unit.uses_matrix_units for unit in units),
            matrix_formats=tuple(sorted({name for unit in units for name in unit.matrix_formats})),
            products_of_a_step=products.pop() if len(products) == 1 else 0,
            rough_functions=tuple(
                sorted({name for unit in units for name in unit.rough_functions})
            ),
            masks_low_bits=any(unit.masks_low_bits for unit in units),
        )


NARROW_FLOAT: Final = "object.narrow_float"
"""Id of the note on narrow formats; it is dropped once the precision of the results is known."""


def narrow_findings(formats: Iterable[str], allowed: Iterable[str]) -> tuple[Finding, ...]:
    """Return a note if there are narrow formats that the task does not have; it refuses nothing.

    Args:
        formats: Formats of the object code, as `ObjectFacts.formats`.
        allowed: Formats of the task itself.
    """
    beyond = sorted(set(formats) - set(allowed))
    if not beyond:
        return ()
    message = f"the kernels compute in {', '.join(beyond)}, which the task does not use"
    hint = "the precision audit decides whether the result is exact enough for the task"
    return (rule_finding(NARROW_FLOAT, message, hint),)
