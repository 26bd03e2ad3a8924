"""Frames between two of our processes: JSON text, binary blobs and file descriptors on a socket.

Never pickle: the other side may have run a candidate. Every receive has size limits and may have a
deadline. What the frames mean is in `messages`.
"""

import array
import json
import select
import socket
import struct
import time
from dataclasses import dataclass
from typing import Any, Final

MAX_DESCRIPTORS: Final = 64

_MAGIC: Final = b"KFF1"
_PREAMBLE: Final = struct.Struct("<4sIII")
"""Magic, bytes of text, count of blobs, count of descriptors."""
_BLOB_SIZE: Final = struct.Struct("<Q")
_INT_BYTES: Final = array.array("i").itemsize


class ChannelError(Exception):
    """The conversation cannot go on."""


class ChannelClosedError(ChannelError):
    """The other side has ended, or closed its end."""


class ChannelTimeoutError(ChannelError):
    """The deadline passed before the frame was complete."""


class ChannelFormatError(ChannelError):
    """The other side sent what is no frame, or one beyond the limits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameLimits:
    """The largest frame that is taken from the other side."""

    text_bytes: int
    """Of the JSON text."""
    blobs: int
    blob_bytes: int
    """All blobs together."""


FROM_OURS: Final = FrameLimits(text_bytes=16 << 20, blobs=256, blob_bytes=256 << 20)
"""From a process that meets no candidate; the largest text is an admission with its operator
graphs, the largest blobs are the object code of every translation unit."""

FROM_LOCKED: Final = FrameLimits(text_bytes=4 << 20, blobs=2, blob_bytes=128 << 20)
"""From a locked process: a thousand samples or configurations; one unit's object code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One message as it travels."""

    kind: str
    """Name of the message type."""
    body: Any
    """Plain data (`kernel_foundry.domain.plain`)."""
    blobs: tuple[bytes, ...] = ()
    descriptors: tuple[int, ...] = ()
    """File descriptors; those of a received frame belong to the receiver."""


class Channel:
    """One end of a stream socket that carries frames.

    Args:
        connection: A connected UNIX stream socket; the channel owns it.
        accepts_descriptors: Whether descriptors may come in. The supervisor says no to
            locked processes.
        limits: What is taken from the other side.
    """

    def __init__(
        self,
        connection: socket.socket,
        *,
        accepts_descriptors: bool,
        limits: FrameLimits = FROM_OURS,
    ) -> None:
        self._socket = connection
        self._accepts_descriptors = accepts_descriptors
        self._limits = limits

    def send(self, frame: Frame, *, timeout_seconds: float | None = None) -> None:
        """Send `frame`.

        Raises:
            ChannelClosedError: nobody reads at the other end.
            ChannelTimeoutError: the other side did not read it in time.
        """
        text = json.dumps({"kind": frame.kind, "body": frame.body}, allow_nan=False).encode()
        preamble = _PREAMBLE.pack(_MAGIC, len(text), len(frame.blobs), len(frame.descriptors))
        ancillary = []
        if frame.descriptors:
            rights = array.array("i", frame.descriptors)
            ancillary.append((socket.SOL_SOCKET, socket.SCM_RIGHTS, rights))
        self._set_timeout(timeout_seconds)
        try:
            # Descriptors ride on the first byte; a preamble is far below any buffer's size.
            sent = self._socket.sendmsg([preamble], ancillary)
            self._socket.sendall(preamble[sent:] + text)
            for blob in frame.blobs:
                self._socket.sendall(_BLOB_SIZE.pack(len(blob)))
                self._socket.sendall(blob)
        except TimeoutError as error:
            raise ChannelTimeoutError("the other side does not read") from error
        except OSError as error:
            raise ChannelClosedError(f"cannot send {frame.kind}: {error}") from error

    def receive(self, *, timeout_seconds: float | None = None) -> Frame:
        """Return the next frame; the deadline holds for the whole of it.

        Raises:
            ChannelClosedError: the other side has ended.
            ChannelTimeoutError: no whole frame came in time.
            ChannelFormatError: what came is no frame, or beyond the limits.
        """
        deadline = None if timeout_seconds is None else time.monotonic() + timeout_seconds
        preamble, descriptors = self._receive_preamble(deadline)
        try:
            return self._receive_rest(preamble, descriptors, deadline)
        except ChannelError:
            close_descriptors(descriptors)
            raise

    def is_readable(self, seconds: float) -> bool:
        """Wait that long at most, and return whether a frame, or the other side's end, began."""
        if self._socket.fileno() < 0:
            return True  # closed meanwhile, which `receive` tells
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return bool(poll.poll(seconds * 1e3))

    def close(self) -> None:
        """Close this end."""
        self._socket.close()

    def _receive_preamble(self, deadline: float | None) -> tuple[bytes, tuple[int, ...]]:
        room = socket.CMSG_SPACE(MAX_DESCRIPTORS * _INT_BYTES) if self._accepts_descriptors else 0
        self._arm(deadline)
        try:
            # Without room Linux closes whatever descriptors the other side sent.
            data, ancillary, _flags, _address = self._socket.recvmsg(_PREAMBLE.size, room)
        except TimeoutError as error:
            raise ChannelTimeoutError("no answer in time") from error
        except OSError as error:
            raise ChannelClosedError(str(error)) from error
        descriptors = _descriptors(ancillary)
        if not data:
            raise ChannelClosedError("the other side has ended")
        try:
            return data + self._read(_PREAMBLE.size - len(data), deadline), descriptors
        except ChannelError:
            close_descriptors(descriptors)
            raise

    def _receive_rest(
        self, preamble: bytes, descriptors: tuple[int, ...], deadline: float | None
    ) -> Frame:
        magic, text_bytes, blob_count, descriptor_count = _PREAMBLE.unpack(preamble)
        limits = self._limits
        if magic != _MAGIC or text_bytes > limits.text_bytes or blob_count > limits.blobs:
            raise ChannelFormatError("not a frame, or one beyond the limits")
        if descriptor_count != len(descriptors):
            raise ChannelFormatError(
                f"expected {descriptor_count} descriptors, got {len(descriptors)}"
            )
        kind, body = _parse(self._read(text_bytes, deadline))
        blobs = []
        left = limits.blob_bytes
        for _ in range(blob_count):
            (size,) = _BLOB_SIZE.unpack(self._read(_BLOB_SIZE.size, deadline))
            if size > left:
                raise ChannelFormatError(f"blobs beyond {limits.blob_bytes} bytes")
            left -= size
            blobs.append(self._read(size, deadline))
        return Frame(kind=kind, body=body, blobs=tuple(blobs), descriptors=descriptors)

    def _read(self, size: int, deadline: float | None) -> bytes:
        data = bytearray()
        while len(data) < size:
            self._arm(deadline)
            try:
                part = self._socket.recv(min(size - len(data), 1 << 20))
            except TimeoutError as error:
                raise ChannelTimeoutError("no whole frame in time") from error
            except OSError as error:
                raise ChannelClosedError(str(error)) from error
            if not part:
                raise ChannelClosedError("the other side ended within a frame")
            data += part
        return bytes(data)

    def _arm(self, deadline: float | None) -> None:
        if deadline is None:
            self._set_timeout(None)
            return
        left = deadline - time.monotonic()
        if left <= 0:
            raise ChannelTimeoutError("no whole frame in time")
        self._set_timeout(left)

    def _set_timeout(self, seconds: float | None) -> None:
        try:
            self._socket.settimeout(seconds)
        except OSError as error:  # this end was closed, maybe by another thread
            raise ChannelClosedError(str(error)) from error


def close_descriptors(descriptors: tuple[int, ...]) -> None:
    """Close received descriptors that nobody took."""
    for descriptor in descriptors:
        socket.close(descriptor)


def _parse(text: bytes) -> tuple[str, Any]:
    try:
        data = json.loads(text, parse_constant=_no_number)
        if b"\\ud" in text.lower():
            # Half a surrogate pair is no text: whoever encodes it would fail, far from here.
            json.dumps(data, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise ChannelFormatError(f"not JSON: {error}") from error
    if not isinstance(data, dict) or data.keys() != {"kind", "body"}:
        raise ChannelFormatError("a frame has a kind and a body")
    if not isinstance(data["kind"], str):
        raise ChannelFormatError("a frame's kind is a string")
    return data["kind"], data["body"]


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no number")


def _descriptors(ancillary: list[tuple[int, int, bytes]]) -> tuple[int, ...]:
    received = array.array("i")
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            received.frombytes(data[: len(data) - len(data) % _INT_BYTES])
    return tuple(received)
