"""Plain operations on host memory, and the allocator that keeps what is freed."""

import subprocess
import sys

import numpy as np

from kernel_foundry_native import _core


def test_large_ranges_are_filled_copied_and_compared_to_the_last_byte() -> None:
    size_bytes = (5 << 20) + 3
    source = np.random.default_rng(0).integers(0, 256, size_bytes, dtype=np.uint8)
    target = np.zeros_like(source)
    _core.copy(target.ctypes.data, source.ctypes.data, size_bytes)
    np.testing.assert_array_equal(target, source)
    assert _core.same_bytes(target.ctypes.data, source.ctypes.data, size_bytes)
    target[-1] ^= 1
    assert not _core.same_bytes(target.ctypes.data, source.ctypes.data, size_bytes)
    _core.fill(target.ctypes.data, size_bytes, _core.POISON_BYTE)
    assert (target == _core.POISON_BYTE).all()


def test_ranges_of_no_bytes_are_left_alone() -> None:
    byte = np.array([7], dtype=np.uint8)
    _core.fill(byte.ctypes.data, 0, 1)
    _core.copy(byte.ctypes.data, 0, 0)
    assert byte[0] == 7
    assert _core.same_bytes(byte.ctypes.data, 0, 0)


def page_faults_of_repeated_allocation(*, keep: bool) -> int:
    """Return the page faults of ten 64 MiB blocks, each written and freed, after the first."""
    code = f"""
import ctypes, resource
from kernel_foundry_native import _core
if {keep}:
    _core.keep_memory()
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
def use():
    block = libc.malloc(ctypes.c_size_t(64 << 20))
    _core.fill(block, 64 << 20, 1)
    libc.free(ctypes.c_void_p(block))
use()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    use()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return int(child.stdout)


def test_freed_memory_is_kept_and_used_again() -> None:
    kept = page_faults_of_repeated_allocation(keep=True)
    # glibc's default maps and faults every such block anew.
    assert kept < page_faults_of_repeated_allocation(keep=False) / 2
