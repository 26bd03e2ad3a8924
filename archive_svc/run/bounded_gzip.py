"""Gzipped files of other people, expanded only within a bound that grows with their size.

A file of a megabyte can hold a gigabyte of one byte.
"""

import gzip
from typing import Final

_RATIO: Final = 100
"""Expanded bytes for each compressed one. Verdicts and samples compress to a twentieth at best."""
_FREE_BYTES: Final = 64 * 2**20
"""Expanded bytes that a file of any size may have on top."""


class ExpansionError(ValueError):
    """The file expands beyond its bound."""


class BoundedGzip:
    """Reads a gzipped file and counts the expanded bytes.

    Args:
        file: The file, at its start.
        size_bytes: Compressed size.
    """

    def __init__(self, file: gzip.GzipFile, size_bytes: int) -> None:
        self._file = file
        self._most = _FREE_BYTES + _RATIO * size_bytes
        self._left = self._most

    def readline(self, size: int) -> bytes:
        """Return the next line, of at most `size` bytes; b"" at the end.

        Raises:
            ExpansionError: the expanded file is larger than its bound.
        """
        return self._counted(self._file.readline(min(size, self._left + 1)))

    def read(self, size: int = -1) -> bytes:
        """Return the next `size` bytes, all that are left for -1; raises as `readline`."""
        most = self._left + 1
        return self._counted(self._file.read(most if size < 0 else min(size, most)))

    def _counted(self, data: bytes) -> bytes:
        self._left -= len(data)
        if self._left < 0:
            raise ExpansionError(
                f"it expands to more than {self._most} bytes, its limit ({_RATIO} times its size,"
                f" and {_FREE_BYTES} bytes)"
            )
        return data
