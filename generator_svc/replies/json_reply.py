"""Replies in JSON: some models put the candidate into strings, because they once had to."""

import json
import re
from collections.abc import Iterator
from typing import Final

_STARTS: Final = ('"', "{", "[")
_MARKUP: Final = re.compile(r"^[ \t]*+(?:`{3}|~{3}|<{5,9}[ \t]*+SEARCH)", re.M)
_MOST_VALUES: Final = 1 << 20
"""Of a text that is read as JSON, marks within its strings counted: two characters can be a list
of a hundred bytes. No candidate has as many."""
_FENCES: Final = re.compile(r"`{3,}")


def markdown_of(text: str) -> str:
    """Return the strings of a JSON text as Markdown; any other text as it is.

    A string without markup becomes a block of its own.
    """
    stripped = text.strip()
    if not stripped.startswith(_STARTS):
        return text
    if sum(stripped.count(mark) for mark in ",[{") > _MOST_VALUES:
        return text
    try:
        value = json.loads(stripped, strict=False)
    except (ValueError, RecursionError):
        return text
    return "\n".join(
        string if _MARKUP.search(string) else _fenced(string) for string in _strings(value)
    )


def _fenced(text: str) -> str:
    fence = "`" * max(3, *(len(run) + 1 for run in _FENCES.findall(text)), 3)
    return f"{fence}\n{text}\n{fence}"


def _strings(value: object) -> Iterator[str]:
    """Return the values, not the names, that are strings, in the order of the text."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            waiting.extend(reversed(item.values()))
        elif isinstance(item, list):
            waiting.extend(reversed(item))
