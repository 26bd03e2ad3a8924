"""What prompts say of `<kf/wgmma.hpp>` in kernels of one's own is so; NVRTC needs no GPU."""

from typing import Any

import pytest

import kernel_foundry_native as native
from evaluator_svc.languages import backend_of
from kernel_foundry.domain.language import Language
from kernel_foundry.languages import language_named
from kernel_foundry.plan.macros import translation_unit

# A warp group waits for tiles that another one has copied, multiplies them and stores the sums.
OWN = """
#include <kf/mbarrier.hpp>
#include <kf/wgmma.hpp>
extern "C" __global__ void __launch_bounds__(THREADS, 1)
    product(const uint4* __restrict__ x, float* __restrict__ out, int steps) {
  extern __shared__ __align__(1024) unsigned char tiles[];
  __shared__ unsigned long long full;
  const unsigned at = kf::shared_address(&full), a = kf::shared_address(tiles);
  if (threadIdx.x == 0) {
    kf::init_barrier(at, THREADS - 128);
    kf::publish_barriers();
  }
  __syncthreads();
  if (threadIdx.x >= 128) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
    for (int i = threadIdx.x - 128; i < 8 * (64 + N); i += THREADS - 128) {
      const int line = i / 8, piece = i % 8;
      reinterpret_cast<uint4*>(tiles)[line * 8 + (piece ^ line % 8)] = x[i];
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    kf::arrive(at);
    return;
  }
  asm volatile("setmaxnreg.inc.sync.aligned.u32 216;");
  float d[N / 2];
  kf::wait(at, 0);
  const unsigned long long left = kf::operand(a, 8192), right = kf::operand(a + 8192, 8192);
  kf::begin_products();
  for (int k = 0; k < 4; ++k) kf::multiply<N, __nv_bfloat16>(d, left + 2 * k, right + 2 * k, k);
  kf::commit_products();
  kf::wait_products<0>();
  kf::hold(d);
  kf::each_four<N>(d, [&](int row, int column, float4 v) {
    *reinterpret_cast<float4*>(out + row * N + column) = v;
  });
}
"""


def _built(compiler: Any, *, threads: int, columns: int) -> Any:
    macros = {"THREADS": threads, "N": columns}
    return compiler.compile(
        source=translation_unit(OWN, macros, native.prelude("cuda"), "cuda"),
        options=list(backend_of(Language.CUDA).toolchain().options_of("")),
        kernels=["product"],
    )


def test_a_kernel_of_ones_own_compiles_without_a_list_of_registers(hopper_compiler: Any) -> None:
    built = _built(hopper_compiler, threads=256, columns=128)
    assert b"wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16" in built.assembly
    assert " 0 bytes spill stores" in built.log


@pytest.mark.parametrize(("threads", "left"), [(384, 168), (512, 128), (576, 96)])
def test_the_widest_products_need_the_launch_bounds_registers(
    hopper_compiler: Any, threads: int, left: int
) -> None:
    said = language_named("cuda").blocks("product")
    assert f"{threads} threads leave {left}" in said or f"{threads} leave {left}" in said
    built = _built(hopper_compiler, threads=threads, columns=128)
    assert f"Used {left} registers" in built.log
    if left >= 154:
        _built(hopper_compiler, threads=threads, columns=256)
        return
    with pytest.raises(native.CompileError, match=rf"Insufficient registers \({left}\)"):
        _built(hopper_compiler, threads=threads, columns=256)
