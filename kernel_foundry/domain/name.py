"""Names that people read in tables and headings: of tasks and of their workloads.

A long name, or one with many blanks, wraps where a terminal ends: what comes after reads as a line
of its own.
"""

import re
from typing import Final

from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.printable import one_line, printable

LONGEST_NAME: Final = 80
"""Characters: the width of a narrow terminal."""
LONGEST_WORKLOAD: Final = 1000
"""Longest name of a workload, which lists its sizes."""
_SHOWN: Final = 80

_NO_WORD: Final = re.compile(r"\W+")
_BLANKS: Final = re.compile("[\\s\u2800]{2}|[^\\S ]|\u2800|^\\s|\\s$")


def file_stem(name: str) -> str:
    """Return a file name for any name: its letters and digits, "_" for the rest."""
    return _NO_WORD.sub("_", name)[:LONGEST_NAME] or "_"


def check_name(text: str, field: str, longest: int = LONGEST_NAME) -> None:
    """Refuse what nothing may be called: too long, runs of blanks, or what does not show.

    Raises:
        InvalidArgumentError: it says in which field, and what is allowed.
    """
    if not 0 < len(text) <= longest:
        fault = f"a name of {len(text)} characters, expected 1 to {longest}"
    elif _BLANKS.search(text) or printable(text) != text:
        fault = "a name with runs of blanks or with characters that do not show"
    else:
        return
    raise InvalidArgumentError(f"{field} {one_line(text[:_SHOWN])!r}: {fault}", field=field)
