"""Steps: for each language, dimension, sign and level, how a kernel moves by one level.

The texts are `hints.yaml` of each language's folder; `hint.py` puts them together.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import yaml

from kernel_foundry.domain.language import Language
from kernel_foundry.languages import language_named


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureStep:
    """How a kernel moves by one level in one dimension."""

    do: str
    """The change, in the language's own constructs; complete sentences."""
    pays: str
    """When it pays."""
    pitfall: str
    """One pitfall of the change."""

    @property
    def text(self) -> str:
        """The whole advice."""
        return f"{self.do} {self.pays} {self.pitfall}"


def step(language: Language, dimension: str, level: int, *, up: bool) -> MeasureStep:
    """Return how a kernel leaves `level`, from 0 to 3.

    Args:
        language: Of the kernel.
        dimension: One of `measures.DIMENSIONS`.
        level: That it has now; 3 has no way up, and 0 none down.
        up: Whether to the next higher level.

    Raises:
        KeyError: there is no such step.
    """
    return _steps(language)[dimension, level, up]


def has_steps(language: Language) -> bool:
    """Return whether there are hints for a language at all."""
    return bool(_steps(language))


@cache
def _steps(language: Language) -> Mapping[tuple[str, int, bool], MeasureStep]:
    table = yaml.safe_load(language_named(language.value).text("hints.yaml")) or {}
    return {
        (dimension, level, sign == "up"): MeasureStep(**texts)
        for dimension, signs in table.items()
        for sign, levels in signs.items()
        for level, texts in levels.items()
    }
