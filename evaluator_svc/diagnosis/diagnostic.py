"""One thing that a compiler says."""

from dataclasses import dataclass
from typing import Final

MAX_LINES: Final = 20_000
"""Of a log."""
MAX_TEXT: Final = 300
"""Characters of one message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    """One error or warning."""

    is_warning: bool
    text: str
    line: int | None
    """In the candidate's own numbering; None: elsewhere, or not believed."""


def same_words(quoted: str, own: str) -> bool:
    """Return whether two lines have the same words: the compiler expands tabs, and may cut."""
    a, b = "".join(quoted.split()), "".join(own.split())
    return bool(a) and (a == b or (a.removeprefix("...").removesuffix("...") in b and "..." in a))
