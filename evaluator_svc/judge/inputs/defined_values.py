"""What unusual values can be, as far as a reference gives numbers on them.

They are tried and made in `judge/unusual_values`.
"""

from collections.abc import Mapping
from dataclasses import dataclass


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
class UnreadTail:
    """Ends of an input's rows that the reference does not look at."""

    values: int
    """Index of the input."""
    lengths: int
    """Index of that which tells the lengths."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Places and lengths, and what lies behind these."""

    short_lengths: tuple[int, ...]
    """Of rows: none, one, or both."""
    unread_tails: tuple[UnreadTail, ...] = ()
    """What lies behind rows' ends."""
    has_whole_tables: bool = False
    """Whether places may be any of those that there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtremeRows:
    """Rows of masks, and what masks leave out."""

    has_full: bool
    """Whether some rows of a mask are ones alone."""
    has_empty: bool
    """Whether some are zeros alone."""
    has_single: bool = True
    """Whether some keep one element alone, or all but one."""
    unread: tuple[Unread, ...] = ()
    of_columns: bool = False
    """Whether columns of masks are meant, and nothing else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FarRows:
    """Rows with infinity, and of thousands."""

    infinite: frozenset[int] = frozenset()
    """Inputs with minus infinity, by index."""
    has_endless: bool = False
    """Whether some rows are infinite throughout, and results may be infinite."""
    is_above: bool = False
    """Whether infinity is above zero."""
    large: frozenset[int] = frozenset()
    """Inputs with large values."""
    is_stepped: bool = False
    """Whether large values are equal or differ by more than an exponential makes something of."""
    any_sign: bool = False
    """Whether large values have other signs than usual ones."""
    exponent: int = 0
    """Binary logarithm of what some are multiplied by besides: the reference gives the same
    multiple of every output."""
    of_columns: bool = False
    """Whether columns are meant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeSizes:
    """How large whole numbers may be."""

    any_sign: bool = False
    """Whether they have other signs than usual ones."""
    bits: int | None = None
    """Most bits; None: as many as their format is tried with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignsBesideWhole:
    """Numbers of both signs beside small whole ones."""

    signs: int
    """Index of the input with random signs."""
    whole: int | None = None
    """That of the input of whole numbers; None: all others stay."""
    least: int = 0
    """The least of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallSlices:
    """What may be small as a whole."""

    inputs: frozenset[int]
    """Inputs that may, by index."""
    has_all: bool
    """Whether these are all that could be."""
    of_variances: bool
    """Whether there are variances."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """Numbers that a reference compares integers with, such as padding."""

    numbers: Mapping[int, tuple[int, ...]]
    """By the index of the input."""
    has_none: bool
    """Whether some rows hold none of them."""
    has_whole: bool
    """Whether some rows are one of them throughout."""
