"""How commands print: text, JSON, and exact text for pipes.

Other output, of click or of a traceback, goes through the printable streams that `main` sets up.
"""

import json
import sys
from typing import TextIO

from kernel_foundry.printable import PrintableStream, printable


def print_text(text: object, *, err: bool = False) -> None:
    """Print text and a newline on standard output, or on standard error."""
    stream = sys.stderr if err else sys.stdout
    stream.write(printable(f"{text}\n"))
    stream.flush()


def print_json(value: object) -> None:
    """Print one JSON object on a line of standard output."""
    # JSON leaves one control character as it is.
    sys.stdout.write(json.dumps(value).replace("\x7f", "\\u007f") + "\n")
    sys.stdout.flush()


def print_exact(text: str) -> None:
    """Print text for a file or another program, exact to the character."""
    stream = exact_stream(sys.stdout)
    stream.write(text)
    stream.flush()


def exact_stream(stream: TextIO) -> TextIO:
    """Return the stream below a printable one."""
    return stream.exact if isinstance(stream, PrintableStream) else stream
