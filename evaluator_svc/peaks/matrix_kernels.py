"""The kernel that the rates of matrix units are measured with, one for each format, in CUDA.

Every warpgroup multiplies tiles that stay where they are, in shared memory (`wgmma`) or registers
(`mma.sync`), and moves nothing: what is left is the rate of the units at the clock that their
power allows. So the operands are random: on zeros the same units run an eighth faster than on any
real product. Formats differ in how many elements 32 bytes hold; every step multiplies 32 bytes.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from kernel_foundry.domain.device import DeviceSpec
from kernel_foundry.domain.language import Language
from kernel_foundry.plan.candidate_text import split

ELEMENTS: Final[Mapping[str, int]] = MappingProxyType(
    {"fp16": 16, "bf16": 16, "tf32": 8, "fp8_e4m3": 32, "int8": 32}
)
"""Elements along K that one step multiplies, by format."""

ROUNDS: Final = 8192
"""Of each call: some 5 ms on a Hopper GPU, long enough that gaps between calls cool nothing."""

STEPS_OF_A_BLOCK: Final = ROUNDS * 2 * 4
"""Products of 64 x 256 by 32 bytes that a block makes in a call, on either path."""

_LEAST_ARCHITECTURE: Final[Mapping[str, int]] = MappingProxyType(
    {"fp16": 80, "bf16": 80, "tf32": 80, "int8": 80, "fp8_e4m3": 89}
)


def matrix_formats(device: DeviceSpec) -> tuple[str, ...]:
    """Return the formats whose matrix units `MATRIX_KERNELS` can drive on `device`."""
    found = re.match(r"sm_(\d+)", device.architecture)
    if device.language is not Language.CUDA or found is None:
        return ()
    architecture = int(found[1])
    return tuple(name for name, least in _LEAST_ARCHITECTURE.items() if architecture >= least)


def step_flops(name: str) -> int:
    """Return the operations of one product of 64 x 256 by 32 bytes, two a multiply-add."""
    return 2 * 64 * 256 * ELEMENTS[name]


MATRIX_KERNELS: Final = split("""```cuda
typedef unsigned int u32;
typedef unsigned long long u64;

// Random bits under a mask that leaves magnitudes between 1/8 and 2.
__device__ __forceinline__ u32 operand_bits(u32 seed, u32 mask, u32 base) {
  u32 h = seed * 0x9e3779b1u;
  h ^= h >> 16; h *= 0x85ebca6bu; h ^= h >> 13; h *= 0xc2b2ae35u; h ^= h >> 16;
  return (h & mask) | base;
}

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define ACC4(C, i) "+" C(d[i]), "+" C(d[i + 1]), "+" C(d[i + 2]), "+" C(d[i + 3])
#define ACC16(C, i) ACC4(C, i), ACC4(C, i + 4), ACC4(C, i + 8), ACC4(C, i + 12)
#define ACC64(C, i) ACC16(C, i), ACC16(C, i + 16), ACC16(C, i + 32), ACC16(C, i + 48)
#define TILES "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \\
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \\
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \\
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, " \\
  "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, " \\
  "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, " \\
  "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, " \\
  "%111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, " \\
  "%125, %126, %127}, %128, %129, "

// Without swizzle: `lead` bytes from one 16 bytes of K to the next, 128 from 8 rows to the next.
__device__ __forceinline__ u64 tile_at(u32 address, u32 lead) {
  return (u64)((address & 0x3ffffu) >> 4) | ((u64)(lead >> 4) << 16) | (8ull << 32);
}

#define PRODUCTS(NAME, SHAPE, TAIL, VALUE, C, MASK, BASE)                     \\
__device__ __forceinline__ void NAME(float* __restrict__ out, int rounds) {                  \\
  __shared__ __align__(128) u32 operands[12288];                                             \\
  for (int i = threadIdx.x; i < 12288; i += 256)                                             \\
    operands[i] = operand_bits(i + 12288 * blockIdx.x, MASK, BASE);                          \\
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");                               \\
  __syncthreads();                                                                           \\
  const u32 a = (u32)__cvta_generic_to_shared(operands) + threadIdx.x / 128 * 1024;          \\
  const u32 b = (u32)__cvta_generic_to_shared(operands) + 16384;                             \\
  VALUE d[128];                                                                              \\
  _Pragma("unroll") for (int i = 0; i < 128; ++i) d[i] = 0;                                  \\
  for (int round = 0; round < rounds; ++round) {                                             \\
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");                                  \\
    _Pragma("unroll") for (int k = 0; k < 4; ++k)                                            \\
      asm volatile("{ .reg .pred p; setp.ne.b32 p, %130, 0; wgmma.mma_async.sync.aligned."   \\
                   SHAPE " " TILES TAIL " }"                                                 \\
                   : ACC64(C, 0), ACC64(C, 64)                                               \\
                   : "l"(tile_at(a + k * 4096, 2048)), "l"(tile_at(b + k * 8192, 4096)), "r"(1)); \\
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");                           \\
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");                           \\
  }                                                                                          \\
  VALUE sum = 0;                                                                             \\
  _Pragma("unroll") for (int i = 0; i < 128; ++i) sum += d[i];                               \\
  out[blockIdx.x * 256 + threadIdx.x] = (float)sum;                                          \\
}
#define F32 "f"
#define S32 "r"
#define WITH_ORDER "p, 1, 1, 0, 0;"
#define WITH_SIGN "p, 1, 1;"
#define PLAIN "p;"
PRODUCTS(multiply_fp16, "m64n256k16.f32.f16.f16", WITH_ORDER, float, F32,
         0x8fff8fffu, 0x30003000u)
PRODUCTS(multiply_bf16, "m64n256k16.f32.bf16.bf16", WITH_ORDER, float, F32,
         0x81ff81ffu, 0x3e003e00u)
PRODUCTS(multiply_tf32, "m64n256k8.f32.tf32.tf32", WITH_SIGN, float, F32,
         0x81ffffffu, 0x3e000000u)
PRODUCTS(multiply_fp8, "m64n256k32.f32.e4m3.e4m3", WITH_SIGN, float, F32,
         0x9f9f9f9fu, 0x20202020u)
PRODUCTS(multiply_int8, "m64n256k32.s32.s8.s8", PLAIN, int, S32,
         0xffffffffu, 0u)
#else
// Of each warp 2 x 8 tiles of 16 x 8: 8 warps make two products of 64 x 256 in 8 turns of 16 steps.
#define PRODUCTS(NAME, SHAPE, VALUE, C, MASK, BASE)                                     \\
__device__ __forceinline__ void NAME(float* __restrict__ out, int rounds) {                  \\
  const u32 seed = 64 * (blockIdx.x * 256 + threadIdx.x);                                    \\
  u32 a[2][4], b[8][2];                                                                      \\
  VALUE d[2][8][4];                                                                          \\
  _Pragma("unroll") for (int i = 0; i < 8; ++i) {                                            \\
    a[i / 4][i % 4] = operand_bits(seed + i, MASK, BASE);                                    \\
    b[i][0] = operand_bits(seed + 8 + i, MASK, BASE);                                        \\
    b[i][1] = operand_bits(seed + 16 + i, MASK, BASE);                                       \\
    _Pragma("unroll") for (int e = 0; e < 4; ++e) d[0][i][e] = d[1][i][e] = 0;               \\
  }                                                                                          \\
  for (int turn = 0; turn < 8 * rounds; ++turn) {                                            \\
    _Pragma("unroll") for (int m = 0; m < 2; ++m)                                            \\
    _Pragma("unroll") for (int n = 0; n < 8; ++n)                                            \\
      asm volatile("mma.sync.aligned." SHAPE " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "      \\
                   "{%0,%1,%2,%3};"                                                          \\
                   : "+" C(d[m][n][0]), "+" C(d[m][n][1]), "+" C(d[m][n][2]), "+" C(d[m][n][3]) \\
                   : "r"(a[m][0]), "r"(a[m][1]), "r"(a[m][2]), "r"(a[m][3]), "r"(b[n][0]),   \\
                     "r"(b[n][1]));                                                          \\
  }                                                                                          \\
  VALUE sum = 0;                                                                             \\
  _Pragma("unroll") for (int i = 0; i < 64; ++i) sum += d[i / 32][i / 4 % 8][i % 4];         \\
  out[blockIdx.x * 256 + threadIdx.x] = (float)sum;                                          \\
}
#define F32 "f"
#define S32 "r"
PRODUCTS(multiply_fp16, "m16n8k16.row.col.f32.f16.f16.f32", float, F32,
         0x8fff8fffu, 0x30003000u)
PRODUCTS(multiply_bf16, "m16n8k16.row.col.f32.bf16.bf16.f32", float, F32,
         0x81ff81ffu, 0x3e003e00u)
PRODUCTS(multiply_tf32, "m16n8k8.row.col.f32.tf32.tf32.f32", float, F32,
         0x81ffffffu, 0x3e000000u)
PRODUCTS(multiply_int8, "m16n8k32.row.col.s32.s8.s8.s32", int, S32,
         0xffffffffu, 0u)
#if __CUDA_ARCH__ >= 890
PRODUCTS(multiply_fp8, "m16n8k32.row.col.f32.e4m3.e4m3.f32", float, F32,
         0x9f9f9f9fu, 0x20202020u)
#else
__device__ __forceinline__ void multiply_fp8(float* out, int rounds) {}
#endif
#endif

extern "C" __global__ void __launch_bounds__(256, 1)
matrix_fp16(float* __restrict__ out, int rounds) {
  multiply_fp16(out, rounds);
}
extern "C" __global__ void __launch_bounds__(256, 1)
matrix_bf16(float* __restrict__ out, int rounds) {
  multiply_bf16(out, rounds);
}
extern "C" __global__ void __launch_bounds__(256, 1)
matrix_tf32(float* __restrict__ out, int rounds) {
  multiply_tf32(out, rounds);
}
extern "C" __global__ void __launch_bounds__(256, 1)
matrix_fp8(float* __restrict__ out, int rounds) {
  multiply_fp8(out, rounds);
}
extern "C" __global__ void __launch_bounds__(256, 1)
matrix_int8(float* __restrict__ out, int rounds) {
  multiply_int8(out, rounds);
}
```
```python
ROUNDS = 8192


def launch(x, out, probe):
    blocks = device.compute_units
    if probe == "fp16":
        matrix_fp16[blocks, 256](out, ROUNDS)
    elif probe == "bf16":
        matrix_bf16[blocks, 256](out, ROUNDS)
    elif probe == "tf32":
        matrix_tf32[blocks, 256](out, ROUNDS)
    elif probe == "fp8_e4m3":
        matrix_fp8[blocks, 256](out, ROUNDS)
    else:
        matrix_int8[blocks, 256](out, ROUNDS)
```
""")
"""Its plan sees the format as the scalar `probe`."""
