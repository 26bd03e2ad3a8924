"""One load or store: where, how wide, and how far apart neighbouring work-items go."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Final

from evaluator_svc.inspector.lowered_program import Space
from evaluator_svc.inspector.stride import Stride

_LOOP_WEIGHT: Final = 8.0
_MAX_DEPTH: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """One load or store."""

    space: Space
    is_store: bool
    stride: Stride
    """In bytes."""
    size_bytes: int
    lanes: int
    """Numbers moved by one work-item at once."""
    depth: int
    """Loops around it."""
    outermost_loop: Hashable
    """Function and header of the outermost loop around it; None: it is in no loop."""
    is_copy: bool = False
    """Stores what was loaded from global memory, unchanged."""
    place: Hashable = None
    """Where in the source it is from; None: it is not told."""
    line: int | None = None
    """Line of the candidate's source; None: it is elsewhere, or not told."""

    @property
    def is_contiguous(self) -> bool:
        """True when neighbours touch neighbouring data."""
        return self.stride is not None and 0 < abs(self.stride) <= self.size_bytes

    @property
    def is_uniform(self) -> bool:
        """True when all neighbours touch the same data."""
        return self.stride == 0


def access_weight(found: Iterable[Access]) -> float:
    """Return how much accesses count together: eight times as much for each loop around one."""
    return sum(_LOOP_WEIGHT ** min(a.depth, _MAX_DEPTH) for a in found)
