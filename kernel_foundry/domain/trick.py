"""Tricks: techniques, in words, that a run's user forbids (`kernel_foundry.domain.steering`).

A text that has a trick's words is taken to be about it: code uses it, a lesson or a direction
leads to it.
"""

import re
from collections.abc import Iterable
from typing import Final

LONGEST_TRICK: Final = 500
"""Characters of a trick."""

MOST_TRICKS: Final = 8
"""That may be banned at once; each stands in every prompt."""


def one_spaced(text: str) -> str:
    """Return a text as tricks are written: one blank between words, none around them."""
    return " ".join(text.split())


def named_trick(tricks: Iterable[str], *texts: str) -> str:
    """Return the first of the tricks whose words stand in one of the texts; "" for none.

    Whole words, whatever their case and the blanks between them.
    """
    for trick in tricks:
        words = r"\s+".join(map(re.escape, trick.split()))
        if words and any(re.search(rf"(?<!\w){words}(?!\w)", text, re.I) for text in texts):
            return trick
    return ""
