"""Values of other people's files in the text of an error: cut short, whatever they are.

A few lines of YAML describe a value whose text has gigabytes; an integer of thousands of digits
has no text at all.
"""

import reprlib
from typing import Any, Final

_LONGEST: Final = 80
_LARGEST_BITS: Final = 128


def shown(value: Any) -> str:
    """Return what Python calls `value`, at most 80 characters of it, in bounded time."""
    text = _SHORT.repr(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


class _ShortRepr(reprlib.Repr):
    """Two levels of containers, a few items of each."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 2
        self.maxlist = self.maxtuple = self.maxset = self.maxdict = 3
        self.maxstring = _LONGEST - 10
        self.maxother = _LONGEST

    def repr_int(self, value: int, level: int) -> str:
        """Return the digits, or how many bits there are: long ones take quadratic time."""
        bits = value.bit_length()
        return str(value) if bits <= _LARGEST_BITS else f"<an integer of {bits} bits>"

    def repr_str(self, value: str, level: int) -> str:
        """Return the text, cut before it is escaped."""
        return super().repr_str(value[: 2 * _LONGEST], level)


_SHORT: Final = _ShortRepr()
