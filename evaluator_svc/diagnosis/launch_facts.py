"""The launches of a bound plan, as diagnosis needs them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchFacts:
    """What the bound plan launches in one call."""

    launch_count: int
    group_count: int
    """Work-groups of the largest launch."""
    group_size: int
    """Work-items in a group of that launch."""
    kernel: str = ""
    """Kernel of that launch; empty: not known."""
    shared_bytes: int = 0
    """Dynamic shared memory of that launch."""
