"""Texts of bounded length and code in fences that nothing inside can close."""

import re
from typing import Final

_FENCE: Final = re.compile(r"`{3,}")
_NOTE_CHARS: Final = 60
"""Longest note in place of what was left out."""


def clip(text: str, max_chars: int) -> str:
    """Return `text`, its middle replaced by a note when it is longer than `max_chars`.

    Head and tail stay, since the first error and the final summary of a log both matter. The
    note is counted, so that the result is never longer than `max_chars` or the note alone.
    """
    if len(text) <= max_chars:
        return text
    kept = max(0, max_chars - _NOTE_CHARS)
    head = kept * 2 // 3
    left_out = len(text) - kept
    note = f"\n[... {left_out} characters left out ...]\n"
    return text[:head] + note + text[len(text) - (kept - head) :]


def fenced(text: str, word: str = "") -> str:
    """Return `text` in a fenced block that no fence inside it closes."""
    longest = max((len(run) for run in _FENCE.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{word}\n{text}\n{fence}"


def one_item(text: str) -> str:
    """Return `text` for an item of a list: no line of it looks like a part of the prompt.

    Compilers quote a candidate's lines, which may be headings or fences.
    """
    first, *others = text.splitlines() or [""]
    quoted = (_FENCE.sub("``", line.strip()) for line in others)
    return "\n    ".join((first, *(line for line in quoted if line)))
