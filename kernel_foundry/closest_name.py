"""What somebody may have meant by a name that nothing has."""

import difflib
from collections.abc import Iterable
from typing import Final

_LONGEST: Final = 60
"""Characters that are compared: the time grows with their square."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ": did you mean optimize?" for the known name most like `name`; "" for none."""
    found = difflib.get_close_matches(name[:_LONGEST], list(known), n=1)
    return f": did you mean {found[0]}?" if found else ""
