"""Text that is safe to show: what would act on a terminal, or be invisible, is written out.

Models, compilers and files of others write much of what is shown. Escape sequences move cursors,
set titles and fill clipboards; marks of direction and of no width make a line read as another.
Every stream that people read is a `PrintableStream`, so that no caller has to think of it.
"""

import io
import logging
import re
import sys
from typing import Final, TextIO

# Control characters but newline and tab, format characters (of direction and of no width),
# separators of lines and paragraphs, lone surrogates, and letters that show as nothing.
_UNSHOWABLE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2"
    "\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164"
    "\ud800-\udfff\ufeff\uffa0\ufff0-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)

_BLANKS: Final = re.compile("[\\s\u2800]{3,}")
"""More of them than any line of ours has; the pattern of no dots shows as one."""


def printable(text: str) -> str:
    r"""Return `text` with newlines and tabs as they are and what cannot be shown as \x1b."""
    return _UNSHOWABLE.sub(_escaped, text)


def one_line(text: str) -> str:
    r"""Return `text` printable and on one line, newlines as \n: it cannot pass for two lines.

    Nor by blanks: a terminal breaks a line at its end, and many blanks reach it.
    """
    return _BLANKS.sub("  ", printable(text).replace("\n", "\\n"))


def _escaped(found: re.Match[str]) -> str:
    number = ord(found[0])
    if number <= 0xFF:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"


class PrintableStream(io.TextIOBase):
    """A stream that writes printable text only, whatever it is given.

    Args:
        exact: Where it goes. There is no `buffer` to write bytes past it.
    """

    def __init__(self, exact: TextIO) -> None:
        self.exact = exact
        """The stream below, for what is meant to be taken to the byte or to move a cursor."""

    @property
    def encoding(self) -> str:  # type: ignore[override]  # the base has a plain attribute
        """Of the stream below."""
        return self.exact.encoding

    @property
    def errors(self) -> str | None:  # type: ignore[override]
        """Of the stream below."""
        return self.exact.errors

    def write(self, text: str) -> int:
        """Write `text` in printable form; return how many characters of it were taken."""
        self.exact.write(printable(text))
        return len(text)

    def flush(self) -> None:
        """Flush the stream below."""
        self.exact.flush()

    def isatty(self) -> bool:
        """Return whether the stream below is a terminal."""
        return self.exact.isatty()

    def fileno(self) -> int:
        """Return the descriptor of the stream below."""
        return self.exact.fileno()

    def writable(self) -> bool:
        """Return that it can be written to."""
        return True

    def close(self) -> None:
        """Leave the stream below open: it is the process's own."""


class LineFormatter(logging.Formatter):
    """Lines of a log: printable, and what follows a record's first line is indented.

    A message with a newline cannot pass for a record of its own.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the text of a record, its traceback with it."""
        return printable(super().format(record)).replace("\n", "\n    ")


def print_safely() -> None:
    """Make this process's standard output and error printable, tracebacks and warnings too."""
    if not isinstance(sys.stdout, PrintableStream):
        sys.stdout = PrintableStream(sys.stdout)
    if not isinstance(sys.stderr, PrintableStream):
        sys.stderr = PrintableStream(sys.stderr)
