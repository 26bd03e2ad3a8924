"""Text files of others: read no further than what they may hold, written past no link.

Any path may be named by mistake, and whoever made a folder may have put a link where a file goes.
"""

import os
import secrets
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


def replace_text_file(path: Path, text: str, *, mode: int = 0o666) -> None:
    """Write a file whole or not at all; what is there under its name goes, a link too.

    Args:
        path: The file.
        text: What it is to hold.
        mode: Who may use it, less what the process's umask takes; 0o600: its owner alone.

    Raises:
        OSError: it cannot be written.
    """
    part = path.with_name(f".{secrets.token_hex(8)}.part")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        part.replace(path)
    except OSError:
        part.unlink(missing_ok=True)
        raise


def _invalid(path: Path, problem: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"{path}: {problem}", file=str(path))
