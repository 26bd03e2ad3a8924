"""The CPU runtime clears no local memory: what one launch leaves there is gone after a scrub."""

from typing import Any

import numpy as np
import pytest

import kernel_foundry_native as native

pytestmark = pytest.mark.sycl

MARK = 0xC0FFEE
WORDS = 8192
GROUPS = 8
BLOCK = 64
ROUNDS = 20
MOST_MISSED = 5
"""A thread of the runtime that is busy elsewhere gets no group of the scrub."""

SOURCE = """
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void leave(sycl::local_accessor<unsigned, 1> tile, int n, unsigned mark, unsigned* found) {
  const int l = syclext::this_work_item::get_nd_item<1>().get_local_id(0);
  for (int i = l; i < n; i += 64) tile[i] = mark;
}
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void count(sycl::local_accessor<unsigned, 1> tile, int n, unsigned mark, unsigned* found) {
  const auto item = syclext::this_work_item::get_nd_item<1>();
  unsigned own = 0;
  for (int i = item.get_local_id(0); i < n; i += 64) own += tile[i] == mark;
  found[item.get_global_id(0)] = own;
}
"""
KERNELS = ("leave", "count")


class LocalMemory:
    """A device with the two kernels."""

    def __init__(self) -> None:
        """Build and load them."""
        self.module = native.device_kind("sycl")
        self.device: Any = self.module.open_device()
        compiler = self.module.open_compiler()
        source = native.prelude("sycl") + SOURCE
        built = compiler.compile(source=source, options=[], kernels=KERNELS)
        self.program = self.device.load(code=built.code, kernels=KERNELS)
        self.found = self.device.allocate(4 * GROUPS * BLOCK)

    def launch(self, kernel: str, words: int) -> None:
        """Run one of them on so much local memory."""
        sequence = self.module.LaunchSequence(self.device)
        sequence.launch(
            program=self.program, kernel=kernel, grid=(GROUPS, 1, 1), block=(BLOCK, 1, 1),
            dimensions=1,
            arguments=[
                self.module.local_argument(4, words), self.module.scalar_argument("int32", words),
                self.module.scalar_argument("uint32", MARK), self.module.buffer_argument(0),
            ],
        )  # fmt: skip
        sequence.bind(0, [self.found.address])
        sequence.run(0)

    def marks(self) -> int:
        """Return how many the second kernel finds."""
        self.launch("count", WORDS // 2)
        counts = np.zeros(GROUPS * BLOCK, np.uint32)
        self.device.copy(counts.ctypes.data, self.found.address, counts.nbytes)
        return int(counts.sum())


@pytest.mark.parametrize("is_scrubbed", [False, True])
def test_a_scrub_leaves_nothing_in_local_memory(*, is_scrubbed: bool) -> None:
    local = LocalMemory()
    seen = 0
    for _ in range(ROUNDS):
        local.launch("leave", WORDS)
        if is_scrubbed:
            local.device.scrub()
        seen += local.marks() > 0
    if is_scrubbed:
        assert seen <= MOST_MISSED
    else:
        assert seen >= ROUNDS - MOST_MISSED
