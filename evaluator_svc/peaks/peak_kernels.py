"""The kernels that a device's limits are measured with, as candidates in each language.

Each is told what to do by the scalar `probe`: memory, plain, read, cache, compute or launch. Memory
and plain are two ways to copy, of which the faster one counts.
"""

from collections.abc import Mapping
from types import MappingProxyType

from kernel_foundry.domain.candidate import KernelSource
from kernel_foundry.domain.language import Language
from kernel_foundry.plan.candidate_text import split

_SYCL = """```sycl
typedef float line __attribute__((ext_vector_type(16)));
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void stream_lines(const float* __restrict__ x, float* __restrict__ out) {
  const size_t start = syclext::this_work_item::get_nd_item<1>().get_global_id(0) * 2048;
  const line* from = (const line*)(x + start);
  line* to = (line*)(out + start);
  // Around the caches: a plain store reads the line first, traffic that nobody asked for.
  for (int i = 0; i < 128; ++i) __builtin_nontemporal_store(from[i] + 1.0f, to + i);
}
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void read_lines(const float* __restrict__ x, float* __restrict__ out) {
  const size_t start = syclext::this_work_item::get_nd_item<1>().get_global_id(0) * 2048;
  const line* from = (const line*)(x + start);
  line a = 0, b = 0, c = 0, d = 0;
  for (int i = 0; i < 128; i += 4) {
    a += from[i]; b += from[i + 1]; c += from[i + 2]; d += from[i + 3];
  }
  a += b + c + d;
  float sum = 0.0f;
  for (int i = 0; i < 16; ++i) sum += a[i];
  out[start] = sum;
}
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::sub_group_size<32>))
void stream(const float* __restrict__ x, float* __restrict__ out, int floats) {
  auto it = syclext::this_work_item::get_nd_item<1>();
  const int lane = it.get_local_id(0);
  const int start = it.get_group(0) * 2048;
  const int end = start + 2048 < floats ? start + 2048 : floats;
  for (int i = start; i < end; i += 32) out[i + lane] = x[i + lane] + 1.0f;
}
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::sub_group_size<32>))
void compute(const float* __restrict__ x, float* __restrict__ out, int rounds) {
  auto it = syclext::this_work_item::get_nd_item<1>();
  const int i = it.get_global_id(0);
  const float f = x[i] * 1e-9f + 0.999f;
  float a = f, b = f + 1, c = f + 2, d = f + 3, e = f + 4, g = f + 5, h = f + 6, k = f + 7;
  for (int r = 0; r < rounds; ++r) {
    a = sycl::fma(a, f, 1e-6f); b = sycl::fma(b, f, 1e-6f);
    c = sycl::fma(c, f, 1e-6f); d = sycl::fma(d, f, 1e-6f);
    e = sycl::fma(e, f, 1e-6f); g = sycl::fma(g, f, 1e-6f);
    h = sycl::fma(h, f, 1e-6f); k = sycl::fma(k, f, 1e-6f);
  }
  out[i] = a + b + c + d + e + g + h + k;
}
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void nothing(float* out) {}
```
```python
def launch(x, out, probe):
    floats = x.numel()
    if probe == "compute":
        compute[floats // 32, 32](x, out, 4096)
    elif probe == "launch":
        nothing[1, 1](out)
    elif probe == "memory":
        stream_lines[floats // 2048, 1](x, out)
    elif probe == "read":
        read_lines[floats // 2048, 1](x, out)
    else:
        stream[cdiv(floats, 2048), 32](x, out, floats)
```
"""

_CUDA = """```cuda
extern "C" __global__ void stream(const float4* __restrict__ x, float4* __restrict__ out,
                                  int lines) {
  const int i = blockIdx.x * 1024 + threadIdx.x;
  float4 kept[4];
  for (int k = 0; k < 4; ++k) if (i + k * 256 < lines) kept[k] = __ldcs(x + i + k * 256);
  for (int k = 0; k < 4; ++k) {
    if (i + k * 256 >= lines) break;
    kept[k].x += 1.0f;
    __stcs(out + i + k * 256, kept[k]);
  }
}
extern "C" __global__ void stream_plain(const float4* __restrict__ x, float4* __restrict__ out,
                                        int lines) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= lines) return;
  float4 v = x[i];
  v.x += 1.0f;
  out[i] = v;
}
extern "C" __global__ void read_only(const float4* __restrict__ x, float4* __restrict__ out,
                                     int lines) {
  const int i = blockIdx.x * 2048 + threadIdx.x;
  float sum = 0.0f;
  for (int k = 0; k < 8; ++k) {
    if (i + k * 256 >= lines) break;
    const float4 v = __ldcs(x + i + k * 256);
    sum += v.x + v.y + v.z + v.w;
  }
  // Never so for zeros; the compiler cannot know, and so leaves no load out.
  if (sum == 1.0f) out[i].x = sum;
}
extern "C" __global__ void stream_cached(const float4* __restrict__ x, float4* __restrict__ out,
                                         int lines) {
  const int i = blockIdx.x * 1024 + threadIdx.x;
  float4 kept[4];
  for (int k = 0; k < 4; ++k) if (i + k * 256 < lines) kept[k] = __ldcg(x + i + k * 256);
  for (int k = 0; k < 4; ++k) {
    if (i + k * 256 >= lines) break;
    kept[k].x += 1.0f;
    out[i + k * 256] = kept[k];
  }
}
extern "C" __global__ void compute(const float* __restrict__ x, float* __restrict__ out,
                                   int rounds) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float f = x[i] * 1e-9f + 0.999f;
  float a = f, b = f + 1, c = f + 2, d = f + 3, e = f + 4, g = f + 5, h = f + 6, k = f + 7;
  for (int r = 0; r < rounds; ++r) {
    a = fmaf(a, f, 1e-6f); b = fmaf(b, f, 1e-6f); c = fmaf(c, f, 1e-6f); d = fmaf(d, f, 1e-6f);
    e = fmaf(e, f, 1e-6f); g = fmaf(g, f, 1e-6f); h = fmaf(h, f, 1e-6f); k = fmaf(k, f, 1e-6f);
  }
  out[i] = a + b + c + d + e + g + h + k;
}
extern "C" __global__ void nothing(float* out) {}
```
```python
def launch(x, out, probe):
    floats = x.numel()
    if probe == "compute":
        compute[floats // 256, 256](x, out, 4096)
    elif probe == "launch":
        nothing[1, 32](out)
    elif probe == "memory":
        stream[cdiv(floats // 4, 1024), 256](x, out, floats // 4)
    elif probe == "plain":
        stream_plain[cdiv(floats // 4, 256), 256](x, out, floats // 4)
    elif probe == "read":
        read_only[cdiv(floats // 4, 2048), 256](x, out, floats // 4)
    else:
        stream_cached[cdiv(floats // 4, 1024), 256](x, out, floats // 4)
```
"""

PEAK_KERNELS: Mapping[Language, KernelSource] = MappingProxyType(
    {Language.SYCL: split(_SYCL), Language.CUDA: split(_CUDA)}
)
