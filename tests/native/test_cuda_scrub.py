"""What multiprocessors keep of a launch is gone after a scrub: shared memory, local memory.

A kernel leaves a mark wherever a work-item can reach; another one of the same shape counts what it
finds. Without a scrub in between it finds most of them, which shows that there is something to do.
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

SOURCE = """
extern "C" __global__ void leave_shared(unsigned mark, unsigned* found) {
  __shared__ unsigned tile[256];
  tile[threadIdx.x] = mark;
  volatile unsigned* reserved = tile - 256;  // the kilobyte before what a kernel declares
  reserved[threadIdx.x] = mark;
  if (mark == 0) found[0] = tile[threadIdx.x];
}
extern "C" __global__ void count_shared(unsigned mark, unsigned* found) {
  __shared__ unsigned tile[256];
  volatile unsigned* own = tile;
  volatile unsigned* reserved = tile - 256;
  if (own[threadIdx.x] == mark) atomicAdd(found, 1);
  if (reserved[threadIdx.x] == mark) atomicAdd(found + 1, 1);
}
extern "C" __global__ void leave_local(unsigned mark, unsigned* found) {
  volatile unsigned kept[600];
  for (int i = 0; i < 600; ++i) kept[i] = mark;
  if (mark == 0) found[0] = kept[found[1] % 600];
}
extern "C" __global__ void count_local(unsigned mark, unsigned* found) {
  volatile unsigned kept[600];
  unsigned count = 0;
  for (int i = 0; i < 600; ++i) count += kept[i] == mark;
  if (count != 0) atomicAdd(found, count);
}
"""
KERNELS = ("leave_shared", "count_shared", "leave_local", "count_local")


@pytest.fixture
def case() -> Iterator[CudaCase]:
    """Return an open device."""
    opened = CudaCase()
    yield opened
    opened.close()


def found(case: CudaCase, memory: str, *, is_scrubbed: bool) -> tuple[int, int]:
    """Return how many marks the second kernel finds; of shared memory also before its tile."""
    compiler = case.module.open_compiler(architecture=case.device.architecture)
    built = compiler.compile(source=SOURCE, options=[], kernels=KERNELS)
    program: Any = case.device.load(code=built.code, kernels=KERNELS)
    counts = case.upload(np.zeros(2, np.uint32))

    def launch(kernel: str) -> None:
        sequence = case.module.LaunchSequence(case.device)
        groups = GROUPS_OF_A_UNIT * case.device.compute_units
        sequence.launch(
            program=program, kernel=kernel, grid=(groups, 1, 1), block=(BLOCK, 1, 1), dimensions=1,
            arguments=[
                case.module.scalar_argument("uint32", MARK), case.module.buffer_argument(0),
            ],
        )  # fmt: skip
        sequence.bind(0, [counts])
        sequence.run(0)

    launch(f"leave_{memory}")
    if is_scrubbed:
        case.device.scrub()
    launch(f"count_{memory}")
    first, second = case.download(counts, 2).view(np.uint32)
    return int(first), int(second)


@pytest.mark.parametrize("memory", ["shared", "local"])
def test_nothing_is_left_after_a_scrub(case: CudaCase, memory: str) -> None:
    assert found(case, memory, is_scrubbed=True) == (0, 0)


@pytest.mark.parametrize("memory", ["shared", "local"])
def test_without_a_scrub_something_is(case: CudaCase, memory: str) -> None:
    """Else the test above would show nothing."""
    assert found(case, memory, is_scrubbed=False) != (0, 0)
