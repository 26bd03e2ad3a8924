"""How tensors lie beside each other in memory that a kernel gets: each in pages of its own.

It ends where its last page does, so that on a CPU a read behind it faults, as far as its alignment
lets it; before and behind it is a page that belongs to nobody.
"""

from typing import Final

from evaluator_svc.messages.draw import ALIGNMENT_BYTES

PAGE_BYTES: Final = 4096
"""Bytes of a host's page; devices have larger units."""


def place(size_bytes: int, end: int) -> tuple[int, int]:
    """Return where a tensor begins, and where the page behind the next gap does.

    Args:
        size_bytes: Of the tensor.
        end: What was returned for the one before, PAGE_BYTES for the first one.
    """
    pages = _up(size_bytes, PAGE_BYTES)
    return end + pages - _up(size_bytes, ALIGNMENT_BYTES), end + pages + PAGE_BYTES


def whole(size_bytes: int, unit_bytes: int) -> int:
    """Return the bytes of as many whole units, at least one."""
    return max(_up(size_bytes, unit_bytes), unit_bytes)


def _up(size: int, unit: int) -> int:
    return -(-size // unit) * unit
