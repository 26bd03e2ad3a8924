"""What kernels take, read from real cubins; and bytes that are none."""

import contextlib
import struct
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator_svc import cubin
from kernel_foundry.domain.evaluation import KernelResources
from tests.behaviour import nvrtc

needs_nvrtc = pytest.mark.skipif(bool(nvrtc.absence()), reason=nvrtc.absence() or "NVRTC is there")

SOURCE = """
extern "C" __global__ void tiled(float* out) {
  __shared__ float tile[300];
  tile[threadIdx.x] = out[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = tile[299 - threadIdx.x];
}
extern "C" __global__ void indexed(float* out, int n) {
  float own[64];
  for (int i = 0; i < 64; ++i) own[i] = 0.0f;
  for (int i = 0; i < n; ++i) own[(int)out[i] & 63] += 1.0f;
  out[n] = own[n & 63];
}
extern "C" __global__ void __launch_bounds__(1024) pressed(const float* x, float* out) {
  float v[96];
#pragma unroll
  for (int i = 0; i < 96; ++i) v[i] = x[i * 1024 + threadIdx.x];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 96; ++i) out[(95 - i) * 1024 + threadIdx.x] = v[i] * v[(i * 5) % 96];
}
"""
LOG = """candidate.cu(3): warning #177-D: variable "x" was declared but never referenced
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'pressed' for 'sm_90a'
ptxas info    : Function properties for pressed
ptxas         .     160 bytes stack frame, 156 bytes spill stores, 96 bytes spill loads
ptxas info    : Function properties for helper
ptxas         .     8 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads
ptxas info    : Used 64 registers, used 1 barriers, 160 bytes cumulative stack size
"""


@cache
def built() -> nvrtc.CudaObject:
    return nvrtc.build(SOURCE)


def by_kernel(code: bytes, log: str) -> dict[str, KernelResources]:
    return {r.kernel: r for r in cubin.resources(code, log)}


@needs_nvrtc
def test_registers_shared_memory_and_stack_of_each_kernel_are_read() -> None:
    found = by_kernel(built().cubin, built().log)

    assert sorted(found) == ["indexed", "pressed", "tiled"]
    assert found["tiled"].shared_bytes == 1200
    assert found["tiled"].local_bytes == found["tiled"].spill_bytes == 0
    assert found["indexed"].local_bytes == 256
    assert found["pressed"].registers == 64
    assert found["pressed"].spill_bytes > 0


@needs_nvrtc
def test_without_a_log_all_but_spills_is_there() -> None:
    told, untold = by_kernel(built().cubin, built().log), by_kernel(built().cubin, "")

    for name, resources in untold.items():
        assert resources.registers == told[name].registers
        assert resources.shared_bytes == told[name].shared_bytes
        assert resources.local_bytes == told[name].local_bytes
        assert resources.spill_bytes == 0


@needs_nvrtc
def test_spills_of_called_functions_are_not_the_kernels() -> None:
    assert by_kernel(built().cubin, LOG)["pressed"].spill_bytes == 252


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (b"", "no 64-bit ELF"),
        (b"\x7fELF\x02\x01" + b"\0" * 58, "machine"),
        (
            struct.pack(
                "<16sHHIQQQIHHHHHH",
                b"\x7fELF\x02\x01",
                2,
                190,
                1,
                0,
                0,
                1 << 40,
                0,
                64,
                0,
                0,
                64,
                9,
                0,
            ),
            "table of sections",
        ),
    ],
)
def test_bytes_that_are_no_cubin_have_a_reason(code: bytes, reason: str) -> None:
    with pytest.raises(cubin.CubinError, match=reason):
        cubin.resources(code, "")


@needs_nvrtc
@given(
    cut=st.integers(0, 30_000),
    changes=st.lists(st.tuples(st.integers(0, 30_000), st.integers(0, 255)), max_size=8),
    log=st.text(alphabet="ptxas info Used 123 registers bytes smem'\n:", max_size=80),
)
def test_damaged_cubins_raise_nothing_else(
    cut: int, changes: list[tuple[int, int]], log: str
) -> None:
    code = bytearray(built().cubin)
    for position, byte in changes:
        code[position % len(code)] = byte

    with contextlib.suppress(cubin.CubinError):
        assert all(r.kernel for r in cubin.resources(bytes(code), log))
    with contextlib.suppress(cubin.CubinError):
        cubin.resources(bytes(code[:cut]), log)
