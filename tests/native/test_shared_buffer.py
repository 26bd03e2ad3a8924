"""Memory that two processes share."""

import os
import subprocess
import sys

import numpy as np
import pytest

from kernel_foundry_native import DriverError
from kernel_foundry_native._core import SharedBuffer


def test_another_process_writes_into_it() -> None:
    buffer = SharedBuffer.create(4096)
    child = """
import sys, numpy as np
from kernel_foundry_native._core import SharedBuffer
other = SharedBuffer.open(int(sys.argv[1]), 4096)
np.frombuffer(other, dtype=np.int32)[:] = np.arange(1024)
"""
    subprocess.run([sys.executable, "-c", child, str(buffer.fd)], pass_fds=[buffer.fd], check=True)
    np.testing.assert_array_equal(np.frombuffer(buffer, dtype=np.int32), np.arange(1024))


def test_a_new_buffer_holds_zeros_and_is_aligned() -> None:
    buffer = SharedBuffer.create(1000)
    assert not np.frombuffer(buffer, dtype=np.uint8).any()
    assert buffer.address % 256 == 0


def test_nobody_can_change_its_size() -> None:
    buffer = SharedBuffer.create(4096)
    for size in (0, 8192):
        with pytest.raises(PermissionError):
            os.ftruncate(buffer.fd, size)


def test_a_read_only_view_refuses_writes() -> None:
    buffer = SharedBuffer.create(64)
    assert memoryview(SharedBuffer.open(buffer.fd, 64, read_only=True)).readonly
    assert not memoryview(SharedBuffer.open(buffer.fd, 64)).readonly


def test_open_leaves_the_descriptor_to_the_caller() -> None:
    buffer = SharedBuffer.create(64)
    other = SharedBuffer.open(buffer.fd, 64)
    other.close()
    other.close()
    assert (other.fd, other.address) == (-1, 0)
    os.fstat(buffer.fd)


def test_more_bytes_than_there_are_is_an_error() -> None:
    buffer = SharedBuffer.create(64)
    with pytest.raises(DriverError, match="64 bytes"):
        SharedBuffer.open(buffer.fd, 1 << 20)


def test_a_closed_buffer_gives_no_view() -> None:
    buffer = SharedBuffer.create(64)
    buffer.close()
    with pytest.raises((BufferError, ValueError)):
        memoryview(buffer)
