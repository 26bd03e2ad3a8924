"""What kernels leave on the stacks of a CPU's threads, local memory too, is gone after a scrub."""

import mmap
import os
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest

import kernel_foundry_native as native
from tests.native.conftest import sycl_source

pytestmark = pytest.mark.sycl

MARK = 0xC0FFEE
WORDS = 4096
GROUPS = 8
BLOCK = 64
BELOW_THE_FRAME = 50_000
"""Words: as far down as the marks begin."""
ROUNDS = 20
SOURCE = """
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void count(sycl::local_accessor<unsigned, 1> tile, int n, int back, int leaves, unsigned mark,
           unsigned* found) {
  const auto item = syclext::this_work_item::get_nd_item<1>();
  volatile unsigned here[4] = {0, 0, 0, 0};
  volatile unsigned* below = here - back;
  for (int i = 0; i < 100000; ++i) here[i % 4] = here[(i + 1) % 4] + i;  // all threads take part
  unsigned in_tile = 0, in_stack = 0;
  for (int i = item.get_local_id(0); i < n; i += 64) {
    in_tile += tile[i] == mark;
    if (leaves) tile[i] = mark;
  }
  for (int i = 0; i < 1024 && item.get_local_id(0) == 0; i += 16) {
    in_stack += below[i] == mark;
    if (leaves) below[i] = mark;
  }
  found[2 * item.get_global_id(0)] = in_tile;
  found[2 * item.get_global_id(0) + 1] = in_stack;
}
"""

WRITES_ABOVE_FRAMES = """
import ctypes, mmap
import kernel_foundry_native as native
from tests.native.conftest import sycl_source
AT_EXECFN = 31  # the name of the file that was executed: <elf.h>
libc = ctypes.CDLL(None)
libc.getauxval.restype = ctypes.c_ulong
name = libc.getauxval(AT_EXECFN)
page = ctypes.c_void_p(name - name % mmap.PAGESIZE)
assert libc.madvise(page, ctypes.c_size_t(mmap.PAGESIZE), 16) == 0  # MADV_DONTDUMP
before = ctypes.string_at(name)
device = native.device_kind("sycl").open_device()
ctypes.memset(name, 0x55, len(before))
device.scrub()
assert ctypes.string_at(name) == before
"""


class Marks:
    def __init__(self) -> None:
        self.module = native.device_kind("sycl")
        self.device: Any = self.module.open_device()
        compiler = self.module.open_compiler()
        source = sycl_source(SOURCE)
        built = compiler.compile(source=source, options=[], kernels=("count",))
        self.program = self.device.load(code=built.code, kernels=("count",))
        self.found = self.device.allocate(8 * GROUPS * BLOCK)
        self.in_tiles = np.zeros(GROUPS)
        """Marks in each group's local memory, of the last launch."""

    def launch(self, *, leaves: bool, mark: int = MARK) -> tuple[bool, bool]:
        scalar = self.module.scalar_argument
        sequence = self.module.LaunchSequence(self.device)
        sequence.launch(
            program=self.program, kernel="count", grid=(GROUPS, 1, 1), block=(BLOCK, 1, 1),
            dimensions=1,
            arguments=[
                self.module.local_argument(4, WORDS), scalar("int32", WORDS),
                scalar("int32", BELOW_THE_FRAME), scalar("int32", int(leaves)),
                scalar("uint32", mark), self.module.buffer_argument(0),
            ],
        )  # fmt: skip
        sequence.bind(0, [self.found.address])
        sequence.run(0)
        counts = np.zeros((GROUPS * BLOCK, 2), np.uint32)
        self.device.copy(counts.ctypes.data, self.found.address, counts.nbytes)
        self.in_tiles = counts[:, 0].reshape(GROUPS, BLOCK).sum(axis=1)
        in_tile, in_stack = counts.any(axis=0)
        return bool(in_tile), bool(in_stack)


@pytest.fixture(scope="module")
def marks() -> Marks:
    """Return an open device."""
    return Marks()


def test_without_a_scrub_both_are_there(marks: Marks) -> None:
    marks.launch(leaves=True)
    found = [marks.launch(leaves=True) for _ in range(ROUNDS)]
    assert any(in_tile for in_tile, _ in found)
    assert any(in_stack for _, in_stack in found)


def test_after_a_scrub_nothing_is(marks: Marks) -> None:
    for _ in range(ROUNDS):
        marks.launch(leaves=True)
        marks.device.scrub()
        assert marks.launch(leaves=False) == (False, False)


def test_nobody_finds_zeros_to_rely_on(marks: Marks) -> None:
    """On the thread that launches, the runtime's own frames may have left some since."""

    def finds_none() -> bool:
        marks.launch(leaves=True)
        marks.device.scrub()
        marks.launch(leaves=False, mark=0)
        return int(marks.in_tiles.min()) == 0

    # While other processes keep the cores, that thread runs most launches alone.
    assert any(finds_none() for _ in range(100 * ROUNDS))


def test_threads_that_come_wait_and_go_are_left_whole(marks: Marks) -> None:
    """Each holds a frame of its own while it is stopped, in a system call or in the middle."""
    ended = threading.Event()
    results: list[int] = []

    def wait() -> None:
        ended.wait()
        results.append(1)

    def count() -> None:
        total = 0
        while not ended.is_set():
            total += 1
        results.append(total)

    threads = [threading.Thread(target=work) for work in (wait, count, wait)]
    for thread in threads:
        thread.start()
    for _ in range(ROUNDS):
        short = threading.Thread(target=list)
        short.start()
        marks.device.scrub()
        short.join()
    ended.set()
    for thread in threads:
        thread.join()
    assert len(results) == len(threads)
    assert min(results) > 0


def test_nothing_is_left_where_arguments_and_environment_lie() -> None:
    """They lie above all frames, at a distance that a kernel on the first thread finds out.

    Their pages need not be one mapping: any advice on one of them splits it.
    """
    environment = {**os.environ, "WIDE": "x" * 2 * mmap.PAGESIZE}
    subprocess.run([sys.executable, "-c", WRITES_ABOVE_FRAMES], env=environment, check=True)
