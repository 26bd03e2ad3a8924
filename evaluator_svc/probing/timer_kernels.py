"""Device code of the timer's probes: work whose duration is known, or known in proportion.

Plans take float32 buffers `x` and `out` and the name of what to launch, `probe`. What their times
must be is in `timer.py`.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from kernel_foundry.domain.candidate import KernelSource
from kernel_foundry.domain.language import Language
from kernel_foundry.plan.candidate_text import split

CHAIN_ROUNDS: Final = 1 << 19
"""Dependent operations of the shortest chain: about a millisecond at four cycles each."""

SPINS_NS: Final[Mapping[str, float]] = MappingProxyType(
    {"spin_20us": 20e3, "spin_200us": 200e3, "spin_2ms": 2e6}
)
"""How long each kernel that looks at the device's own clock runs; CUDA alone has such a clock."""

_SYCL = """```sycl
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void chain(const float* x, float* out, int rounds) {
  const float f = x[0] * 1e-9f + 0.999f;
  float a = f;
  for (int r = 0; r < rounds; ++r) a = sycl::fma(a, f, 1e-6f);
  out[0] = a;
}
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void copy(const float* x, float* out, int floats) {
  const int i = syclext::this_work_item::get_nd_item<1>().get_global_id(0);
  if (i < floats) out[i] = x[i];
}
```
```python
def launch(x, out, probe):
    if probe == "copy":
        copy[cdiv(x.numel(), 256), 256](x, out, x.numel())
    elif probe == "chain_1":
        chain[1, 1](x, out, ROUNDS)
    elif probe == "chain_2":
        chain[1, 1](x, out, 2 * ROUNDS)
    else:
        chain[1, 1](x, out, 4 * ROUNDS)
```
"""

_CUDA = """```cuda
extern "C" __global__ void chain(const float* x, float* out, int rounds) {
  const float f = x[0] * 1e-9f + 0.999f;
  float a = f;
  for (int r = 0; r < rounds; ++r) a = fmaf(a, f, 1e-6f);
  out[0] = a;
}
extern "C" __global__ void copy(const float* x, float* out, int floats) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < floats) out[i] = x[i];
}
__device__ unsigned long long now_ns() {
  unsigned long long t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
  return t;
}
extern "C" __global__ void spin(float* out, int duration_ns) {
  const unsigned long long start = now_ns();
  while (now_ns() - start < duration_ns) {}
  out[0] = 1.0f;
}
```
```python
def launch(x, out, probe):
    if probe == "copy":
        copy[cdiv(x.numel(), 256), 256](x, out, x.numel())
    elif probe == "chain_1":
        chain[1, 1](x, out, ROUNDS)
    elif probe == "chain_2":
        chain[1, 1](x, out, 2 * ROUNDS)
    elif probe == "chain_4":
        chain[1, 1](x, out, 4 * ROUNDS)
    elif probe == "spin_20us":
        spin[1, 1](out, 20000)
    elif probe == "spin_200us":
        spin[1, 1](out, 200000)
    else:
        spin[1, 1](out, 2000000)
```
"""

TIMER_KERNELS: Mapping[Language, KernelSource] = MappingProxyType(
    {
        Language.SYCL: split(_SYCL.replace("ROUNDS", str(CHAIN_ROUNDS))),
        Language.CUDA: split(_CUDA.replace("ROUNDS", str(CHAIN_ROUNDS))),
    }
)
