"""Files written whole or not at all, past whatever link may lie under their name.

Where a user named the file, a failure to write is theirs to hear of.
"""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from kernel_foundry.errors import InvalidArgumentError


def replace_file(
    path: Path, content: str | bytes, *, mode: int = 0o666, durable: bool = False
) -> None:
    """Write a file whole or not at all; what is there under its name goes, a link too.

    Args:
        path: The file, in a folder that exists.
        content: What it is to hold; a text as UTF-8.
        mode: Who may use it, less what the process's umask takes; 0o600: its owner alone.
        durable: Whether it must survive a power cut once this returns.

    Raises:
        OSError: it cannot be written.
    """
    with _part(path, content, mode, durable=durable) as part:
        part.replace(path)


def create_private_file(path: Path, content: bytes) -> None:
    """Write a file for its owner alone, durably; one that is there stays as it is.

    Of processes that do so at the same time one succeeds.

    Raises:
        OSError: it cannot be written.
    """
    with _part(path, content, 0o600, durable=True) as part, suppress(FileExistsError):
        os.link(part, path)


@contextmanager
def writing(what: object, *, field: str) -> Iterator[None]:
    """Tell the user of a failure to write `what`, which they named by the argument `field`.

    Raises:
        InvalidArgumentError: in place of an `OSError`.
    """
    try:
        yield
    except OSError as error:
        raise InvalidArgumentError(
            f"{what} cannot be written: {error.strerror}", field=field
        ) from error


@contextmanager
def _part(path: Path, content: str | bytes, mode: int, *, durable: bool) -> Iterator[Path]:
    part = path.with_name(f".{secrets.token_hex(8)}.part")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        yield part
        if durable:
            _sync_folder(path.parent)
    finally:
        part.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
