"""Behaviour measures: a kernel's coordinates in the archive's grid (docs/design.md, 6)."""

from dataclasses import dataclass

LEVELS = 4
"""Levels of each measure, 0 to 3."""

DIMENSIONS = ("memory", "algorithm", "synchronization")
"""The three measures, in grid order."""

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
