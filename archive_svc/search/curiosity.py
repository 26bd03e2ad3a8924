"""Curiosity: how often an elite's children found a place in the archive.

Source: Cully and Demiris, "Quality and Diversity Optimization", 2018.
"""

from collections.abc import Iterator, Mapping
from typing import Final

REWARD: Final = 1.0
PENALTY: Final = 0.5
LEAST: Final = 0.1
START: Final = 1.0


class Curiosity(Mapping[str, float]):
    """Scores by digest; unknown ones have the score that all start with."""

    def __init__(self) -> None:
        self._scores: dict[str, float] = {}

    def add(self, parent: str, *, was_added: bool) -> None:
        """Note what became of a child."""
        score = self[parent] + (REWARD if was_added else -PENALTY)
        self._scores[parent] = max(score, LEAST)

    def __getitem__(self, digest: str) -> float:
        return self._scores.get(digest, START)

    def __iter__(self) -> Iterator[str]:
        return iter(self._scores)

    def __len__(self) -> int:
        return len(self._scores)
