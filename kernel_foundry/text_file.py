"""Text files of others: read no further than what they may hold, written past no link.

Any path may be named by mistake, and whoever made a folder may have put a link where a file goes.
"""

import os
from pathlib import Path

from kernel_foundry.errors import InvalidArgumentError


def read_text_file(path: Path, most: int) -> str:
    """Return what a file of UTF-8 text holds.

    Args:
        path: The file, or a pipe.
        most: Characters.

    Raises:
        InvalidArgumentError: it cannot be read, is no text, or is longer; the message says so.
    """
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(most + 1)
    except OSError as error:
        raise _invalid(path, str(error.strerror)) from error
    except UnicodeDecodeError as error:
        raise _invalid(path, f"not UTF-8 text: {error}") from error
    if len(text) > most:
        raise _invalid(path, f"more than {most} characters")
    return text


def replace_text_file(path: Path, text: str) -> None:
    """Write a file whole or not at all; what is there under its name goes, a link too.

    Raises:
        OSError: it cannot be written.
    """
    part = path.with_name(f".{os.getpid()}.part")
    try:
        with part.open("x", encoding="utf-8") as file:
            file.write(text)
        part.replace(path)
    except FileExistsError:
        raise  # somebody else's
    except OSError:
        part.unlink(missing_ok=True)
        raise


def _invalid(path: Path, problem: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"{path}: {problem}", file=str(path))
