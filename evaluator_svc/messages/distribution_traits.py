"""The traits of each distribution of unusual values: how it is drawn, chosen, compared and audited.

A new distribution gets a row here. `judge/unusual_values` makes the values, and
`judge/admission/value_ranges.py` finds the distributions on which a task's candidates are tried.
"""

from enum import Flag, auto
from typing import Final

from kernel_foundry.domain.admission import Distribution


class Trait(Flag):
    """A property of a distribution."""

    OF_PARAMETERS = auto()
    """Parameters are changed; inputs are ordinary."""
    BY_ELEMENT = auto()
    """Each element changes differently, which breaks the pattern of a table."""
    BY_ROW = auto()
    """Some rows alone can have it, so one draw can have rows of several distributions."""
    OF_CALL = auto()
    """It is made from values that a timed call could have."""
    CANCELS = auto()
    """Sums lose most of their digits, so the tolerance grows by the loss of honest float32."""
    TIES = auto()
    """Values are equal, so a kernel may name another index among them than the reference does."""
    AS_DRAWN = auto()
    """A kernel has to use the inputs exactly as they are: no rounding error of inputs is
    granted."""
    AUDITED = auto()
    """It shows in which precision something was computed, because sums cancel, because few terms
    dominate or exist, or because no term, or every input, is exact in 16 bits."""
    REPORTED = auto()
    """A difference is reported and refuses nothing: kernels may flush denormals and treat NaN as
    they like."""
    ENDLESS = auto()
    """Results may be infinite; infinities are compared like numbers."""
    BRANCHES = auto()
    """It may make the reference take another branch."""
    OF_LINES = auto()
    """It is about neighbouring elements, their sums or their order, so it says nothing about
    references that work element by element."""


_NONE: Final = Trait(0)
TRAITS: Final = {
    Distribution.LARGE: Trait.BY_ROW | Trait.BRANCHES,
    Distribution.OFFSET: Trait.BY_ROW | Trait.CANCELS | Trait.TIES | Trait.BRANCHES,
    Distribution.ZEROS: Trait.TIES,
    Distribution.SPARSE: Trait.BY_ELEMENT | Trait.BY_ROW | Trait.TIES,
    Distribution.DENORMAL: Trait.REPORTED,
    Distribution.NON_FINITE: Trait.REPORTED,
    Distribution.SIGNS: Trait.BY_ELEMENT | Trait.BY_ROW | Trait.AUDITED | Trait.BRANCHES,
    Distribution.MAGNITUDES: Trait.BY_ELEMENT | Trait.BY_ROW | Trait.AUDITED | Trait.BRANCHES,
    Distribution.INTEGERS: Trait.BY_ELEMENT | Trait.BY_ROW | Trait.TIES | Trait.AUDITED,
    Distribution.POWERS: Trait.BY_ELEMENT | Trait.BY_ROW | Trait.TIES | Trait.AUDITED,
    Distribution.OUTLIERS: (
        Trait.BY_ELEMENT
        | Trait.BY_ROW
        | Trait.OF_CALL
        | Trait.CANCELS
        | Trait.AUDITED
        | Trait.BRANCHES
    ),
    Distribution.FEW: Trait.BY_ELEMENT | Trait.CANCELS | Trait.TIES | Trait.AUDITED,
    Distribution.WEIGHTS: Trait.OF_PARAMETERS | Trait.AUDITED,
    Distribution.USUAL_WEIGHTS: Trait.OF_PARAMETERS | Trait.AUDITED,
    Distribution.WEIGHT_OUTLIERS: (
        Trait.OF_PARAMETERS | Trait.OF_CALL | Trait.CANCELS | Trait.AUDITED
    ),
    Distribution.LARGE_INTEGERS: _NONE,
    Distribution.BLOCKS: Trait.BY_ELEMENT | Trait.OF_CALL,
    Distribution.NEGATIVE: Trait.BY_ROW | Trait.TIES,
    Distribution.ALIKE: _NONE,
    Distribution.DENSE: _NONE,
    Distribution.EXTREMES: Trait.TIES,
    Distribution.NEAR_ONE: Trait.CANCELS,
    Distribution.NEAR_ZERO: _NONE,
    Distribution.ABSOLUTE: Trait.TIES | Trait.AS_DRAWN,
    Distribution.CLOSE: _NONE,
    Distribution.LASTING_WEIGHTS: Trait.OF_PARAMETERS,
    Distribution.HUGE: _NONE,
    Distribution.TINY: _NONE,
    Distribution.FAR: Trait.TIES | Trait.ENDLESS,
    Distribution.PLACES: Trait.TIES,
    Distribution.LEVEL: _NONE,
    Distribution.SMALL: Trait.BY_ROW,
    Distribution.BOUNDS: Trait.CANCELS | Trait.TIES | Trait.AS_DRAWN,
    Distribution.BESIDE_ONE: Trait.AS_DRAWN,
    Distribution.ORDERED: Trait.BY_ROW | Trait.AS_DRAWN | Trait.OF_LINES,
    Distribution.COLUMNS: Trait.TIES | Trait.ENDLESS | Trait.OF_LINES,
}


def has(distribution: Distribution | None, trait: Trait) -> bool:
    """Return whether a distribution has `trait`; ordinary values (None) have none."""
    return distribution is not None and trait in TRAITS[distribution]


def with_trait(trait: Trait) -> tuple[Distribution, ...]:
    """Return the distributions with a trait, in their order."""
    return tuple(distribution for distribution in Distribution if has(distribution, trait))
