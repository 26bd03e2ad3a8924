"""Behaviour measures: a kernel's coordinates in the archive's grid (docs/design.md, 6)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

LEVELS = 4
"""Levels of each measure, 0 to 3."""

DIMENSIONS = ("memory", "algorithm", "synchronization")
"""The three measures, in grid order."""

LEVEL_TEXTS: Final[Mapping[str, tuple[str, str, str, str]]] = {
    "memory": (
        "scalar or strided global access",
        "contiguous or vectorised access",
        "tiles staged in {near} memory",
        "tiles in {near} memory, and register tiles or loads ahead of use",
    ),
    "algorithm": (
        "direct translation in several passes",
        "fused, with fewer passes than the reference has operators",
        "cooperative or reformulated: work-group reduction, scan, online recurrence",
        "blocked with reuse of register tiles, or matrix units",
    ),
    "synchronization": (
        "no synchronisation",
        "work-group barriers, group operations or local atomics",
        "sub-group or warp primitives",
        "global: atomics, barriers across work-groups, launches that pass data on",
    ),
}
"""The meaning of each measure's levels, 0 to 3, as prompts quote it.

`{near}` stands for a language's word for the memory of a work-group. The rules by which a kernel
gets its levels are in `evaluator_svc/behaviour/levels.py`.
"""

Cell = tuple[int, int, int]
"""Coordinates (memory, algorithm, synchronization) of a grid cell, each 0 to 3."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Measures:
    """Coordinates of a kernel, each a level from 0 to 3."""

    memory: int
    algorithm: int
    synchronization: int

    def __post_init__(self) -> None:
        for name in DIMENSIONS:
            level = getattr(self, name)
            if not 0 <= level < LEVELS:
                raise ValueError(f"measure {name} is {level}, expected 0 to {LEVELS - 1}")

    @property
    def cell(self) -> tuple[int, int, int]:
        """Grid cell (memory, algorithm, synchronization)."""
        return (self.memory, self.algorithm, self.synchronization)
