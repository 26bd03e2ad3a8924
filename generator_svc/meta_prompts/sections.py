"""Sections: the guidance of a prompt that evolves, and the texts that it sets out from.

The seeds are the Markdown files under `guidance/` of each language's folder, for people to edit.
How they evolve is in `population.py`.
"""

from dataclasses import dataclass, fields
from functools import cache
from typing import Final

from kernel_foundry.domain.digest import content_digest
from kernel_foundry.domain.language import Language
from kernel_foundry.languages import language_named

MAX_SECTION_CHARS: Final = 4_000
"""Longest section: four of them stay a small part of a prompt, and the longest seed fits twice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sections:
    """Guidance on writing kernels in one language, each section Markdown without headings."""

    philosophy: str
    """How to set about it: what to prefer when in doubt."""
    strategies: str
    """Techniques that make kernels of this language fast."""
    pitfalls: str
    """Mistakes that make them fail."""
    analysis: str
    """How to read verdicts and findings."""

    @property
    def digest(self) -> str:
        """SHA-256 hex digest of all four."""
        return content_digest(*(getattr(self, name) for name in SECTION_NAMES))


SECTION_NAMES: Final = tuple(field.name for field in fields(Sections))
"""In the order in which prompts print them."""


@cache
def seed_sections(language: Language) -> Sections:
    """Return the hand-written sections of `language`."""
    record = language_named(language.value)
    return Sections(**{name: record.text(f"guidance/{name}.md") for name in SECTION_NAMES})
