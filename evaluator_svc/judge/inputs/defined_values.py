"""Which unusual values a reference gives numbers on, found once for each workload.

They are tried and made in `judge/unusual_values`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kernel_foundry.domain.admission import Distribution


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """Values of an input that the reference does not look at."""

    values: int
    """Index of the input."""
    mask: int
    """Index of the mask beside it."""
    where: bool
    """What the mask is there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtremeRows:
    """Rows of masks, and what masks leave out."""

    has_full: bool
    """Whether some rows of a mask are ones alone."""
    has_empty: bool
    """Whether some are zeros alone."""
    unread: tuple[Unread, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FarRows:
    """Rows with infinity, and of thousands."""

    infinite: frozenset[int] = frozenset()
    """Inputs with minus infinity, by index."""
    large: frozenset[int] = frozenset()
    """Inputs with large values."""
    any_sign: bool = False
    """Whether large values have other signs than usual ones."""
    exponent: int = 0
    """Binary logarithm of what some are multiplied by besides: the reference gives the same
    multiple of every output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallSlices:
    """What may be small as a whole."""

    of_inputs: bool
    of_variances: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """Numbers that a reference compares integers with, such as padding."""

    numbers: Mapping[int, tuple[int, ...]]
    """By the index of the input."""
    has_none: bool
    """Whether some rows hold none of them."""
    has_whole: bool
    """Whether some rows are one of them throughout."""


@dataclass(slots=True, kw_only=True)
class DefinedValues:
    """All of them; None until `unusual_values/distributions.py` has found out."""

    extreme_rows: ExtremeRows | None = None
    far_rows: FarRows | None = None
    least_length: int | None = None
    """Of rows: 0 or 1."""
    whole_tables: bool = False
    """Whether places may be any of those that there are; found with `least_length`."""
    level_inputs: frozenset[int] | None = None
    """Inputs, by index, that may have rows of one value."""
    small_slices: SmallSlices | None = None
    marks: Marks | None = None
    changed_alone: dict[Distribution, tuple[int, ...]] = field(default_factory=dict)
    """Inputs, by index, of which each changes alone, as not all can together."""
    zero_weights: bool = False
    """Whether elements of parameters may be zero."""
    spare_bits: int | None = None
    """Bits of their type that large integers leave; None: as many as `whole_numbers.py` says."""
    least_step: int | None = None
    """The least of powers and shifts; None: they stay as they are."""
