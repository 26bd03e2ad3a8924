"""The launches of a bound plan: how the work is split."""

from dataclasses import dataclass
from typing import Final

_MOST: Final = 2.0**53
"""Whole numbers up to here are floats as they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchFacts:
    """The launches of a bound plan in one call."""

    launch_count: int
    """Kernels launched in one call, each launch counted."""
    group_count: int
    """Work-groups of the largest launch, the one with most work-items."""
    group_size: int
    """Work-items in a group of that launch."""
    kernel: str = ""
    """Kernel of that launch; empty: not known."""
    shared_bytes: int = 0
    """Dynamic shared memory of that launch."""

    @property
    def features(self) -> tuple[float, ...]:
        """Coordinates of the archive's finer map, each from 0."""
        counts = (self.group_size, self.group_count, self.shared_bytes, self.launch_count)
        return tuple(min(max(float(min(n, 1 << 60)), 0.0), _MOST) for n in counts)
