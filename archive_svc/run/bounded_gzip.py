"""Gzipped files of other people, expanded no further than their size lets expect.

A file of a megabyte can hold a gigabyte of one byte.
"""

import gzip
from typing import Final

_RATIO: Final = 100
"""Lines of verdicts and of samples take a twentieth of their size at best."""
_FREE_BYTES: Final = 64 * 2**20
"""What a file of any size may hold."""


class ExpansionError(ValueError):
    """The file holds more than its size lets expect."""


class BoundedGzip:
    """What a gzipped file holds, with a running total.

    Args:
        file: The file, at its start.
        size_bytes: Of what is compressed.
    """

    def __init__(self, file: gzip.GzipFile, size_bytes: int) -> None:
        self._file = file
        self._most = _FREE_BYTES + _RATIO * size_bytes
        self._left = self._most

    def readline(self, size: int) -> bytes:
        """Return the next line, of at most `size` bytes; b"" at the end.

        Raises:
            ExpansionError: more than the file may hold has been read.
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
                f"it holds more than {self._most} bytes, {_RATIO} times its size and more: it was"
                " made to fill memory or disk"
            )
        return data
