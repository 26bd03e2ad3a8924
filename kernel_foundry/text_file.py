"""Text files of others, read no further than what they may hold.

Any path may be named by mistake. Files are written in `whole_file.py`.
"""

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


def _invalid(path: Path, problem: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"{path}: {problem}", file=str(path))
