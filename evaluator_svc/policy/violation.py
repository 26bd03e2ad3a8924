"""A place where a rule for device code matches."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One match of one rule."""

    rule: str
    message: str
    hint: str = ""
    offset: int | None = None
    """In the text with its lines joined; None when it stands at no one place."""
