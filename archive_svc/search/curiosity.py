"""Curiosity: how often an elite's children found a place in the archive.

Source: Cully and Demiris, "Quality and Diversity Optimization", 2018.
"""

from typing import Final

REWARD: Final = 1.0
PENALTY: Final = 0.5
LEAST: Final = 0.1
START: Final = 1.0


class Curiosity(dict[str, float]):
    """Scores by digest; unknown ones have the score that all start with."""

    def __missing__(self, digest: str) -> float:
        return START

    def add(self, parent: str, *, was_added: bool) -> None:
        """Note what became of a child."""
        score = self[parent] + (REWARD if was_added else -PENALTY)
        self[parent] = max(score, LEAST)
