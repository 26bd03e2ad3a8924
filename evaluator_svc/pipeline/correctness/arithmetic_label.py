"""How a candidate computes, in words that object code and measured bits bear out together.

Object code shows formats, matrix units and how many products a step adds up; only the bits tell
whether narrow products were split ones. What neither shows is not said.
"""

from typing import Final

from evaluator_svc.policy import ObjectFacts

_SPLIT_BITS: Final = 14.0
"""More bits than one product of 16-bit operands or TF32 leaves: 8 to 13."""
_COUNTS: Final = {3: "three", 6: "six"}


def arithmetic_text(
    facts: ObjectFacts | None,
    *,
    is_narrow: bool,
    effective_bits: float | None,
    uses_library: bool,
) -> str:
    """Return how the kernels compute; empty where it does not show.

    Args:
        facts: What the object code computes in; None: it cannot be read.
        is_narrow: Whether the task has formats of 16 bits or fewer itself.
        effective_bits: Of the least exact workload; None: not measured.
        uses_library: Whether library calls do a part of the work.
    """
    own = _own_text(facts, effective_bits, is_wide=not is_narrow) if facts is not None else ""
    if uses_library:
        return f"library calls; own kernels: {own}" if own else "library calls"
    return own


def _own_text(facts: ObjectFacts, bits: float | None, *, is_wide: bool) -> str:
    if facts.matrix_formats:
        narrow = " and ".join(facts.matrix_formats)
        is_split = is_wide and bits is not None and bits >= _SPLIT_BITS
        if not is_split or facts.matrix_formats == ("float64",):
            return f"{narrow} products on matrix units"
        return f"float32 by {_COUNTS.get(facts.products_of_a_step, 'split')} {narrow} products"
    if not is_wide or facts.uses_matrix_units or facts.masks_low_bits:
        return ""
    if facts.formats:
        return f"float32 beside {' and '.join(facts.formats)}, without matrix units"
    return "float32, nothing narrower"
