"""Nothing of what a launch leaves in shared or local memory or in registers is there after a scrub.

A kernel leaves a mark wherever a work-item can reach; another one of the same shape counts what it
finds. That it would find them is shown in a single launch that leaves and counts: whether one
launch finds what another one left is up to the driver, and some leave nothing by themselves.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.native.cuda_case import CudaCase

pytestmark = pytest.mark.gpu

MARK = 0xC0FFEE
BLOCK = 256
GROUPS_OF_A_UNIT = 8

REGISTERS = 48

SOURCE = """
__device__ void leave(volatile unsigned* words, int count, unsigned mark) {
  for (int i = 0; i < count; ++i) words[i] = mark;
}
__device__ void count(const volatile unsigned* words, int count, unsigned mark, unsigned* found) {
  unsigned marks = 0;
  for (int i = 0; i < count; ++i) marks += words[i] == mark;
  if (marks != 0) atomicAdd(found, marks);
}
extern "C" __global__ void shared(unsigned mark, int leaves, int counts, unsigned* found) {
  __shared__ volatile unsigned tile[256];
  volatile unsigned* own = tile + threadIdx.x;
  volatile unsigned* reserved = own - 256;  // the kilobyte before what a kernel declares
  if (leaves) leave(own, 1, mark);
  if (leaves) leave(reserved, 1, mark);
  if (counts) count(own, 1, mark, found);
  if (counts) count(reserved, 1, mark, found + 1);
}
extern "C" __global__ void local(unsigned mark, int leaves, int counts, unsigned* found) {
  volatile unsigned kept[600];
  if (leaves) leave(kept, 600, mark);
  if (counts) count(kept, 600, mark, found);
}
// Each goes on to the next in every round, so that all are in use at once.
__device__ void use(unsigned (&held)[REGISTERS], const volatile unsigned* found) {
  const unsigned zero = found[1];
  #pragma unroll 1
  for (unsigned round = 0; round < zero + 2; ++round) {
    const unsigned first = held[0];
    #pragma unroll
    for (int i = 0; i + 1 < REGISTERS; ++i) held[i] = held[i + 1] ^ zero;
    held[REGISTERS - 1] = first;
  }
}
__device__ unsigned marks_among(const unsigned (&held)[REGISTERS], unsigned mark) {
  unsigned marks = 0;
  #pragma unroll
  for (int i = 0; i < REGISTERS; ++i) marks += held[i] == mark;
  return marks;
}
extern "C" __global__ void __launch_bounds__(256)
leave_registers(unsigned mark, int leaves, int counts, unsigned* found) {
  unsigned held[REGISTERS];
  #pragma unroll
  for (int i = 0; i < REGISTERS; ++i) held[i] = mark + ((const volatile unsigned*)found)[1];
  use(held, found);
  if (marks_among(held, mark) != REGISTERS) atomicAdd(found + 1, 1u);
}
extern "C" __global__ void __launch_bounds__(256)
count_registers(unsigned mark, int leaves, int counts, unsigned* found) {
  unsigned held[REGISTERS];
  #pragma unroll
  for (int i = 0; i < REGISTERS; ++i) asm volatile("" : "=r"(held[i]));  // never written
  use(held, found);
  const unsigned marks = marks_among(held, mark);
  if (marks != 0) atomicAdd(found, marks);
}
""".replace("REGISTERS", str(REGISTERS))
KERNELS = ("shared", "local", "leave_registers", "count_registers")
WORDS = {"shared": 1, "local": 600}
"""That a work-item leaves in memory."""


@pytest.fixture
def case() -> Iterator[CudaCase]:
    opened = CudaCase()
    yield opened
    opened.close()


class Probe:
    def __init__(self, case: CudaCase, kernel: str) -> None:
        compiler = case.module.open_compiler(architecture=case.device.architecture)
        built = compiler.compile(source=SOURCE, options=[], kernels=KERNELS)
        self._case, self._kernel = case, kernel
        self._program: Any = case.device.load(code=built.code, kernels=KERNELS)
        self._found = case.upload(np.zeros(2, np.uint32))
        self.groups = GROUPS_OF_A_UNIT * case.device.compute_units

    def launch(self, *, leaves: bool, counts: bool) -> None:
        module = self._case.module
        sequence = module.LaunchSequence(self._case.device)
        sequence.launch(
            program=self._program, kernel=self._kernel_of(leaves=leaves),
            grid=(self.groups, 1, 1), block=(BLOCK, 1, 1), dimensions=1,
            arguments=[
                module.scalar_argument("uint32", MARK),
                module.scalar_argument("int32", int(leaves)),
                module.scalar_argument("int32", int(counts)),
                module.buffer_argument(0),
            ],
        )  # fmt: skip
        sequence.bind(0, [self._found])
        sequence.run(0)

    def _kernel_of(self, *, leaves: bool) -> str:
        if self._kernel != "registers":
            return self._kernel
        return "leave_registers" if leaves else "count_registers"

    def found(self) -> tuple[int, int]:
        """Return how many marks were counted since last time; of shared memory also before it."""
        first, second = self._case.download(self._found, 2).view(np.uint32)
        self._case.device.copy(self._found, np.zeros(2, np.uint32).ctypes.data, 8)
        return int(first), int(second)


@pytest.mark.parametrize("memory", WORDS)
def test_marks_are_found_by_the_launch_that_leaves_them(case: CudaCase, memory: str) -> None:
    """Else the test below would show nothing."""
    probe = Probe(case, memory)
    probe.launch(leaves=True, counts=True)
    assert probe.found()[0] == probe.groups * BLOCK * WORDS[memory]


@pytest.mark.parametrize("memory", [*WORDS, "registers"])
def test_nothing_is_left_after_a_scrub(case: CudaCase, memory: str) -> None:
    probe = Probe(case, memory)
    probe.launch(leaves=True, counts=False)
    probe.launch(leaves=False, counts=True)
    unscrubbed = probe.found()
    probe.launch(leaves=True, counts=False)
    case.device.scrub()
    probe.launch(leaves=False, counts=True)
    assert probe.found() == (0, 0)
    if unscrubbed == (0, 0):
        pytest.skip(f"it holds, but without a scrub: this driver leaves nothing of {memory}")
