// Matrix products of a warp group (wgmma), the right operand in shared memory. Hopper (sm_90a).
//
// `multiply<N, Element>(d, a, b, keep)`: 128 threads add a (64 x K) times b (K x N) to d, in
// float32; K values are 32 bytes: 16 of __half or __nv_bfloat16, 8 of float, read as TF32, 32 of
// __nv_fp8_e4m3 or __nv_fp8_e5m2. `keep` 0 forgets d first. Thread t of the group has in d[4 j + e]
//   row 16 (t / 32) + t % 32 / 4 + 8 (e / 2), column 8 j + 2 (t % 4) + e % 2.
// Sums inside the unit round towards zero, those of 8-bit operands to some 14 bits: add parts of a
// long sum in registers.
// `multiply_held<N, Element>`: the same with 16 bits of a in registers, as `rounded` makes it of
// sums.
// `each_four<N>(d, body)` hands out d as `body(row, column, float4)`.
#pragma once

#include <kf/formats.hpp>
#include <kf/sums.hpp>

namespace kf {

// Describes an operand in tiles of rows of 128 bytes with the 128-byte swizzle, as `copy_box`
// leaves them. Rows along m or n: 128 bytes of k a row. Rows along k, of 16-bit values alone: 64
// values of m or n a row, and tiles of `tile_bytes` for every 64 of them.
__device__ __forceinline__ unsigned long long operand(unsigned address, unsigned tile_bytes) {
  return ((address & 0x3ffffu) >> 4) | static_cast<unsigned long long>(tile_bytes >> 4) << 16 |
         64ull << 32 | 1ull << 62;
}

__device__ __forceinline__ void begin_products() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void commit_products() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Waits until at most PENDING committed groups are unfinished.
template <int PENDING>
__device__ __forceinline__ void wait_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

// Keeps the compiler from moving accesses to d across: products write it behind its back.
template <int COUNT>
__device__ __forceinline__ void hold(float (&d)[COUNT]) {
#pragma unroll
  for (int i = 0; i < COUNT; ++i) asm volatile("" : "+f"(d[i])::"memory");
}

#define KF_REGISTERS_64                                                                            \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                         \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define KF_SUMS_64                                                                                 \
  "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),  \
      "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]),     \
      "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]),   \
      "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]),   \
      "+f"(d[29]), "+f"(d[30]), "+f"(d[31])

#define KF_REGISTERS_128                                                                           \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                         \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "               \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "               \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define KF_SUMS_128                                                                                \
  "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),  \
      "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]),     \
      "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]),   \
      "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]),   \
      "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]),   \
      "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]),   \
      "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), "+f"(d[49]),   \
      "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]),   \
      "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])

#define KF_REGISTERS_192                                                                           \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                         \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "               \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "               \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "               \
  "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "               \
  "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define KF_SUMS_192                                                                                \
  "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),  \
      "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]),     \
      "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]),   \
      "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]),   \
      "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]),   \
      "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]),   \
      "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), "+f"(d[49]),   \
      "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]),   \
      "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63]),   \
      "+f"(d[64]), "+f"(d[65]), "+f"(d[66]), "+f"(d[67]), "+f"(d[68]), "+f"(d[69]), "+f"(d[70]),   \
      "+f"(d[71]), "+f"(d[72]), "+f"(d[73]), "+f"(d[74]), "+f"(d[75]), "+f"(d[76]), "+f"(d[77]),   \
      "+f"(d[78]), "+f"(d[79]), "+f"(d[80]), "+f"(d[81]), "+f"(d[82]), "+f"(d[83]), "+f"(d[84]),   \
      "+f"(d[85]), "+f"(d[86]), "+f"(d[87]), "+f"(d[88]), "+f"(d[89]), "+f"(d[90]), "+f"(d[91]),   \
      "+f"(d[92]), "+f"(d[93]), "+f"(d[94]), "+f"(d[95])

#define KF_REGISTERS_256                                                                           \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                         \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "               \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "               \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "               \
  "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "               \
  "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "               \
  "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "   \
  "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define KF_SUMS_256                                                                                \
  "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),  \
      "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]),     \
      "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]),   \
      "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]),   \
      "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]),   \
      "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]),   \
      "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), "+f"(d[49]),   \
      "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]),   \
      "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63]),   \
      "+f"(d[64]), "+f"(d[65]), "+f"(d[66]), "+f"(d[67]), "+f"(d[68]), "+f"(d[69]), "+f"(d[70]),   \
      "+f"(d[71]), "+f"(d[72]), "+f"(d[73]), "+f"(d[74]), "+f"(d[75]), "+f"(d[76]), "+f"(d[77]),   \
      "+f"(d[78]), "+f"(d[79]), "+f"(d[80]), "+f"(d[81]), "+f"(d[82]), "+f"(d[83]), "+f"(d[84]),   \
      "+f"(d[85]), "+f"(d[86]), "+f"(d[87]), "+f"(d[88]), "+f"(d[89]), "+f"(d[90]), "+f"(d[91]),   \
      "+f"(d[92]), "+f"(d[93]), "+f"(d[94]), "+f"(d[95]), "+f"(d[96]), "+f"(d[97]), "+f"(d[98]),   \
      "+f"(d[99]), "+f"(d[100]), "+f"(d[101]), "+f"(d[102]), "+f"(d[103]), "+f"(d[104]),           \
      "+f"(d[105]), "+f"(d[106]), "+f"(d[107]), "+f"(d[108]), "+f"(d[109]), "+f"(d[110]),          \
      "+f"(d[111]), "+f"(d[112]), "+f"(d[113]), "+f"(d[114]), "+f"(d[115]), "+f"(d[116]),          \
      "+f"(d[117]), "+f"(d[118]), "+f"(d[119]), "+f"(d[120]), "+f"(d[121]), "+f"(d[122]),          \
      "+f"(d[123]), "+f"(d[124]), "+f"(d[125]), "+f"(d[126]), "+f"(d[127])

#define KF_PRODUCT(N, FORMAT, OPERANDS, KEEP)                                                      \
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " KEEP ", 0;\n"                                   \
               "wgmma.mma_async.sync.aligned.m64n" #N FORMAT " {" KF_REGISTERS_##N "}, " OPERANDS  \
                                                                                   ";\n}"          \
               : KF_SUMS_##N                                                                       \
               : "l"(a), "l"(b), "r"(keep), "n"(A_ALONG_K), "n"(B_ALONG_K))

#define KF_PRODUCT_OF_ELEMENTS(N, A, B, KEEP, TURN_A, TURN_B)                                      \
  if constexpr (IS_BFLOAT16<Element>) {                                                            \
    KF_PRODUCT(N, "k16.f32.bf16.bf16", A ", " B ", p, 1, 1, " TURN_A ", " TURN_B, KEEP);           \
  } else if constexpr (BYTES<Element> == 2) {                                                      \
    KF_PRODUCT(N, "k16.f32.f16.f16", A ", " B ", p, 1, 1, " TURN_A ", " TURN_B, KEEP);             \
  } else if constexpr (BYTES<Element> == 4) {                                                      \
    KF_PRODUCT(N, "k8.f32.tf32.tf32", A ", " B ", p, 1, 1", KEEP);                                 \
  } else if constexpr (IS_E5M2<Element>) {                                                         \
    KF_PRODUCT(N, "k32.f32.e5m2.e5m2", A ", " B ", p, 1, 1", KEEP);                                \
  } else {                                                                                         \
    KF_PRODUCT(N, "k32.f32.e4m3.e4m3", A ", " B ", p, 1, 1", KEEP);                                \
  }

// A_ALONG_K, B_ALONG_K: 1 where the operand's rows in shared memory run along k.
template <int N, class Element, int A_ALONG_K = 0, int B_ALONG_K = 0>
__device__ __forceinline__ void multiply(float (&d)[N / 2], unsigned long long a,
                                         unsigned long long b, int keep) {
  static_assert(N == 64 || N == 128 || N == 192 || N == 256, "tiles are 64, 128, 192 or 256 wide");
  static_assert(BYTES<Element> == 2 || (!A_ALONG_K && !B_ALONG_K),
                "float and 8-bit operands have k contiguous");
  if constexpr (N == 64) {
    KF_PRODUCT_OF_ELEMENTS(64, "%32", "%33", "%34", "%35", "%36")
  } else if constexpr (N == 128) {
    KF_PRODUCT_OF_ELEMENTS(128, "%64", "%65", "%66", "%67", "%68")
  } else if constexpr (N == 192) {
    KF_PRODUCT_OF_ELEMENTS(192, "%96", "%97", "%98", "%99", "%100")
  } else if constexpr (N == 256) {
    KF_PRODUCT_OF_ELEMENTS(256, "%128", "%129", "%130", "%131", "%132")
  }
}

// Sixteen columns of sums, from 16 `step` on, as the left operand of a product.
template <class Element, int COUNT>
__device__ __forceinline__ void rounded(const float (&d)[COUNT], int step, unsigned (&to)[4]) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float low = d[8 * step + 2 * i], high = d[8 * step + 2 * i + 1];
    if constexpr (IS_BFLOAT16<Element>) {
      asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(to[i]) : "f"(high), "f"(low));
    } else {
      asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(to[i]) : "f"(high), "f"(low));
    }
  }
}

#define KF_PRODUCT_HELD(N, FORMAT, A, B, KEEP, TURN_B)                                             \
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " KEEP ", 0;\n"                                   \
               "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." FORMAT "." FORMAT                 \
               " {" KF_REGISTERS_##N "}, {" A "}, " B ", p, 1, 1, " TURN_B ";\n}"                  \
               : KF_SUMS_##N                                                                       \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(keep), "n"(B_ALONG_K))

template <int N, class Element, int B_ALONG_K>
__device__ __forceinline__ void multiply_held(float (&d)[N / 2], const unsigned (&a)[4],
                                              unsigned long long b, int keep) {
  static_assert(N == 64 || N == 128, "tiles are 64 or 128 wide");
  static_assert(BYTES<Element> == 2, "sums are rounded to 16 bits");
  if constexpr (N == 64 && IS_BFLOAT16<Element>) {
    KF_PRODUCT_HELD(64, "bf16", "%32, %33, %34, %35", "%36", "%37", "%38");
  } else if constexpr (N == 64) {
    KF_PRODUCT_HELD(64, "f16", "%32, %33, %34, %35", "%36", "%37", "%38");
  } else if constexpr (IS_BFLOAT16<Element>) {
    KF_PRODUCT_HELD(128, "bf16", "%64, %65, %66, %67", "%68", "%69", "%70");
  } else {
    KF_PRODUCT_HELD(128, "f16", "%64, %65, %66, %67", "%68", "%69", "%70");
  }
}

template <int N, class Body>
__device__ __forceinline__ void each_four(const float (&d)[N / 2], const Body& body) {
  const int first = threadIdx.x / 32 % 4 * 16;
  each_four_of_warp<N>(d, [&](int row, int column, float4 v) { body(first + row, column, v); });
}

}  // namespace kf
