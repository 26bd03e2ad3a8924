"""JSON of other people, counted before it is read: two bytes can be an object of a hundred.

Values are checked by who reads them: `evidence/record.py`, `archive_svc/run/run_file.py`.
"""

import json
from collections.abc import Callable
from typing import Any, Final

_MOST_VALUES: Final = 1 << 22
"""Some hundreds of megabytes once they are read; a verdict with all its samples has thousands."""


def parse_json(
    text: bytes,
    *,
    most_values: int = _MOST_VALUES,
    parse_constant: Callable[[str], Any] | None = None,
    object_pairs_hook: Callable[[list[tuple[str, Any]]], Any] | None = None,
) -> Any:
    """Return the value that `text` describes.

    Args:
        text: UTF-8.
        most_values: Values in all, counted by what separates and opens them, also within strings.
        parse_constant: As of `json.loads`, as is the next.
        object_pairs_hook: See there.

    Raises:
        ValueError: it is no JSON, has more values, or is nested too deeply.
    """
    count = sum(text.count(mark) for mark in (b",", b"[", b"{"))
    if count > most_values:
        raise ValueError(f"some {count} values, expected at most {most_values}")
    try:
        return json.loads(text, parse_constant=parse_constant, object_pairs_hook=object_pairs_hook)
    except RecursionError as error:
        raise ValueError("values are nested too deeply") from error
