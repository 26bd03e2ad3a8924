"""A folder of entries named by digest: written atomically, checked when read, never trusted.

An entry that is cut short or altered is as good as absent. Knows nothing of what it holds.
"""

import hashlib
import tempfile
from pathlib import Path
from typing import Final

_DIGEST_BYTES: Final = 32
_MAGIC: Final = b"KFC1"


class DiskCache:
    """Entries under one folder; several processes may use it at once.

    Args:
        folder: Created on first write.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, key: str) -> bytes | None:
        """Return the entry of `key` (a hex digest), or None when there is no sound one."""
        try:
            data = self._path(key).read_bytes()
        except OSError:
            return None
        head = len(_MAGIC) + _DIGEST_BYTES
        content = data[head:]
        if data[:head] != _MAGIC + hashlib.sha256(content).digest():
            return None
        return content

    def put(self, key: str, content: bytes) -> None:
        """Store `content` under `key`. A full or read-only disk only costs the entry."""
        path = self._path(key)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
                file.write(_MAGIC + hashlib.sha256(content).digest() + content)
            Path(file.name).replace(path)
        except OSError:
            return

    def _path(self, key: str) -> Path:
        return self._folder / key[:2] / key
