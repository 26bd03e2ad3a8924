"""Counts a model server's answer while it is read and expanded, and ends it at a limit.

A kilobyte of gzip is a megabyte, and gzip of gzip a gigabyte. All SDKs read by httpx, which has no
limit of its own; it is set where httpx looks up how to expand an answer.
"""

from typing import Final

import httpx
from httpx import _decoders, _models

_MOST_BYTES: Final = 128 << 20
"""Bytes of one answer: ten times the longest reply, or a thousand vectors of lessons."""
_PIECE_BYTES: Final = 16 << 10
"""Expanded at once: at most some sixteen megabytes come of it."""


class _BoundedDecoder(_decoders.ContentDecoder):
    """Expands as `inner` does, up to the limit."""

    inner: type[_decoders.ContentDecoder]

    def __init__(self) -> None:
        self._inner = self.inner()
        self._left = _MOST_BYTES

    def decode(self, data: bytes) -> bytes:
        """Return `data` expanded.

        Raises:
            httpx.DecodingError: all of the answer together is beyond the limit.
        """
        pieces = (data[at : at + _PIECE_BYTES] for at in range(0, len(data), _PIECE_BYTES))
        return b"".join(self._count(self._inner.decode(piece)) for piece in pieces)

    def flush(self) -> bytes:
        """Return the rest; raises as `decode`."""
        return self._count(self._inner.flush())

    def _count(self, data: bytes) -> bytes:
        self._left -= len(data)
        if self._left < 0:
            raise httpx.DecodingError(f"the answer is longer than {_MOST_BYTES} bytes")
        return data


def limit_answers() -> None:
    """Let every answer that httpx reads in this process end at the limit; twice changes nothing."""
    for name, inner in _decoders.SUPPORTED_DECODERS.items():
        if not issubclass(inner, _BoundedDecoder):
            _decoders.SUPPORTED_DECODERS[name] = _counted(inner)
    # For answers that are not packed; a name of that module alone.
    vars(_models)["IdentityDecoder"] = _decoders.SUPPORTED_DECODERS["identity"]


def _counted(decoder: type[_decoders.ContentDecoder]) -> type[_BoundedDecoder]:
    class Counted(_BoundedDecoder):
        inner = decoder

    return Counted
