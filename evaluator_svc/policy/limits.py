"""Bounds that rules go by."""

from typing import Final

MAX_SOURCE_CHARACTERS: Final = 1 << 18
"""As many as kernels are looked for in."""
MAX_LIST_NUMBERS: Final = 4096
"""Numbers in one list of a source; a table with 2048 steps and its end has 2049."""
MAX_STRING_CHARACTERS: Final = 4096
MAX_PLAN_NUMBERS: Final = 512
"""Numbers of a plan beside TUNE."""
MAX_CONSTANT_BYTES: Final = 32 << 10
"""Constant data of an object; coefficients and tables of twiddle factors have a tenth of that."""
LARGE_EXTENT: Final = 1024
"""From here on a number that is compared with is taken for a measured shape's."""
SHORTENING_MASKS: Final = frozenset((0xFFFF_FFFF << bits) & 0xFFFF_FFFF for bits in range(11, 21))
"""A bitwise and with one of them leaves 12 bits of a float32's fraction or fewer."""
ADDRESSES: Final = range(1 << 40, 1 << 48)
"""Where a process on Linux has its memory; sizes are below, most hash multipliers above."""
