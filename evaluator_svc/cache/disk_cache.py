"""A folder of entries that only holders of one key can write, or find: authenticated when read.

An entry that is cut short, altered, moved or of another key is as good as absent.
"""

import contextlib
import hmac
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Final

from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.whole_file import replace_file

_CODE_BYTES: Final = 32
_MAGIC: Final = b"KFC2"
_HASH: Final = "sha256"
_OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH
_ROOT: Final = 0


class DiskCache:
    """Entries under one folder; several processes may use it at once, each with a key of its own.

    Files are named by an authentication code, too: entries of other keys are never met.

    Args:
        folder: Created on first write.
        key: Returns the secret key; asked for at first use.
    """

    def __init__(self, folder: Path, key: Callable[[], bytes]) -> None:
        self._folder = folder
        self._key = key

    def get(self, name: str) -> bytes | None:
        """Return the entry of `name` (a hex digest), or None when there is no sound one."""
        try:
            data = self._path(name).read_bytes()
        except OSError:
            return None
        head = len(_MAGIC) + _CODE_BYTES
        content = data[head:]
        if not hmac.compare_digest(data[:head], _MAGIC + self._code(b"entry", name, content)):
            return None
        return content

    def put(self, name: str, content: bytes) -> None:
        """Store `content` under `name`. A full or read-only disk only costs the entry."""
        path = self._path(name)
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            entry = _MAGIC + self._code(b"entry", name, content) + content
            replace_file(path, entry, mode=0o600)

    def _path(self, name: str) -> Path:
        code = self._code(b"name", name).hex()
        return self._folder / code[:2] / code

    def _code(self, purpose: bytes, name: str, content: bytes = b"") -> bytes:
        """Return the code of `content`, bound to its name and to this folder's purpose."""
        code = hmac.new(self._key(), digestmod=_HASH)
        for part in (purpose, self._folder.name.encode(), name.encode()):
            code.update(len(part).to_bytes(8, "big") + part)
        code.update(content)
        return code.digest()


def make_private(folder: Path, setting: str = "KERNEL_FOUNDRY_CACHE_DIR") -> None:
    """Make `folder` for its owner alone, or refuse one that others could have written to.

    What lies there without an authentication code (compiled baselines, locks) is as private as it.

    Args:
        folder: The folder.
        setting: Variable of the environment that names it.

    Raises:
        InvalidArgumentError: others own it or may write it; says what to do.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.stat()
    except OSError:
        return  # nothing can be kept there, which only costs time
    if found.st_uid not in (os.geteuid(), _ROOT):
        what = f"belongs to another user (id {found.st_uid})"
    elif found.st_mode & _OTHERS_WRITE:
        what = f"may be written by others (mode {stat.S_IMODE(found.st_mode):04o})"
    else:
        return
    raise InvalidArgumentError(
        f"the cache folder {folder} {what}, and compiled code in it is run: remove it (all in it is"
        f" made again), or set {setting} to a folder of your own",
        field=setting,
    )
