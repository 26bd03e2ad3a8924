"""Frames cross whole, and nothing else is taken for one."""

import os
import socket
import threading

import pytest

from evaluator_svc.processes.channel import (
    Channel,
    ChannelClosedError,
    ChannelFormatError,
    ChannelTimeoutError,
    Frame,
)


@pytest.fixture
def ends():
    """Two raw sockets that are connected."""
    left, right = socket.socketpair()
    yield left, right
    left.close()
    right.close()


def test_text_blobs_and_descriptors_arrive_as_sent(ends, tmp_path):
    """A frame with everything in it is the same on the other side."""
    left, right = (Channel(end, accepts_descriptors=True) for end in ends)
    path = tmp_path / "shared"
    path.write_bytes(b"through the descriptor")
    blob = os.urandom(3 << 20)
    with path.open("rb") as file:
        frame = Frame(
            kind="Hello", body={"a": [1, "ü"]}, blobs=(blob, b""), descriptors=(file.fileno(),)
        )
        sender = threading.Thread(target=left.send, args=(frame,))
        sender.start()
        received = right.receive(timeout_seconds=60.0)
        sender.join()
    assert received.kind == "Hello"
    assert received.body == {"a": [1, "ü"]}
    assert received.blobs == (blob, b"")
    (descriptor,) = received.descriptors
    assert os.pread(descriptor, 100, 0) == b"through the descriptor"
    os.close(descriptor)


def test_descriptors_are_refused_where_none_are_expected(ends):
    """A process that ran a candidate cannot push descriptors into the supervisor."""
    left = Channel(ends[0], accepts_descriptors=True)
    right = Channel(ends[1], accepts_descriptors=False)
    left.send(Frame(kind="Hello", body=None, descriptors=(0,)))
    with pytest.raises(ChannelFormatError, match="descriptors"):
        right.receive(timeout_seconds=60.0)


def test_a_frame_that_drips_in_ends_at_the_deadline(ends):
    """The deadline holds for the whole frame and not for each byte."""
    raw, right = ends[0], Channel(ends[1], accepts_descriptors=False)
    stop = threading.Event()

    def drip() -> None:
        raw.sendall(b"KFF1" + (1000).to_bytes(4, "little") + bytes(8))
        while not stop.wait(0.02):
            raw.sendall(b"x")

    thread = threading.Thread(target=drip)
    thread.start()
    with pytest.raises(ChannelTimeoutError):
        right.receive(timeout_seconds=0.2)
    stop.set()
    thread.join()


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"KFF1" + b"\xff" * 12,
        b"KFF1" + (2).to_bytes(4, "little") + bytes(8) + b"[]",
        b"KFF1" + (4).to_bytes(4, "little") + bytes(8) + b"{{{{",
    ],
)
def test_what_is_no_frame_is_refused(ends, data):
    """Bytes that are no frame raise the format error, whatever they are."""
    ends[0].sendall(data)
    with pytest.raises(ChannelFormatError):
        Channel(ends[1], accepts_descriptors=False).receive(timeout_seconds=60.0)


def test_the_other_sides_end_is_told_from_silence(ends):
    """A closed socket is not a time-out."""
    ends[0].close()
    with pytest.raises(ChannelClosedError):
        Channel(ends[1], accepts_descriptors=False).receive(timeout_seconds=60.0)
