"""Typed messages over a `Channel`: dataclasses out, only the expected dataclasses in."""

from dataclasses import dataclass
from typing import Any

from evaluator_svc.processes.channel import Channel, ChannelFormatError, Frame, close_descriptors
from kernel_foundry.domain.plain import PlainError, from_plain, to_plain


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedMessage:
    """A message with what travelled beside it."""

    message: Any
    """A message of one of the expected types."""
    blobs: tuple[bytes, ...]
    descriptors: tuple[int, ...]
    """File descriptors that now belong to the receiver."""


class Conversation:
    """One end of a conversation.

    Args:
        channel: The channel; the conversation owns it.
    """

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def send(
        self,
        message: Any,
        *,
        blobs: tuple[bytes, ...] = (),
        descriptors: tuple[int, ...] = (),
        timeout_seconds: float | None = None,
    ) -> None:
        """Send a dataclass; raises as `Channel.send` does."""
        frame = Frame(
            kind=type(message).__name__,
            body=to_plain(message),
            blobs=blobs,
            descriptors=descriptors,
        )
        self._channel.send(frame, timeout_seconds=timeout_seconds)

    def has_answer(self, seconds: float) -> bool:
        """Wait that long at most, and return whether a message, or the other side's end, began."""
        return self._channel.is_readable(seconds)

    def receive(self, *expected: type, timeout_seconds: float | None = None) -> ReceivedMessage:
        """Return the next message, which must be of an `expected` type.

        Raises:
            ChannelError: as `Channel.receive`; `ChannelFormatError` also when the message is
                of another type or does not fit its type.
        """
        frame = self._channel.receive(timeout_seconds=timeout_seconds)
        try:
            message = _read(frame, expected)
        except ChannelFormatError:
            close_descriptors(frame.descriptors)
            raise
        return ReceivedMessage(message=message, blobs=frame.blobs, descriptors=frame.descriptors)

    def close(self) -> None:
        """Close the channel."""
        self._channel.close()


def _read(frame: Frame, expected: tuple[type, ...]) -> Any:
    kind = next((k for k in expected if k.__name__ == frame.kind), None)
    if kind is None:
        names = ", ".join(k.__name__ for k in expected)
        raise ChannelFormatError(f"expected {names}, got {frame.kind[:80]!r}")
    try:
        return from_plain(kind, frame.body)
    except PlainError as error:
        raise ChannelFormatError(str(error)) from error
