// Matrix products of a warp (mma.sync) and loads of their operands (ldmatrix), from sm_80 on; 8-bit
// operands from sm_89 on.
//
// `multiply_fragments<Element>(d, a, b0, b1)` adds a (16 x K) times b (K x 8) to d, in float32. K
// values are 32 bytes: 16 of __half or __nv_bfloat16, 32 of __nv_fp8_e4m3 or __nv_fp8_e5m2. A lane
// has in d[e] row lane / 4 + 8 (e / 2), column 2 (lane % 4) + e % 2.
//
// Tiles in shared memory are lines of 128 bytes; the piece p of 16 bytes of line r is at p ^ r % 8,
// so that eight lines' pieces lie in different banks (`line_piece`).
//   load_left_rows, load_right_rows         lines are rows of A or columns of B, along k
//   load_left_columns, load_right_columns   of 16-bit values: lines run along m or n
// The right ones load two fragments, of 16 columns: {b[0], b[1]} and {b[2], b[3]}.
#pragma once

#include <kf/formats.hpp>

namespace kf {

// The place of a piece of 16 bytes in a tile.
__device__ __forceinline__ unsigned line_piece(int line, int piece) {
  return line * 128 + (piece ^ line % 8) * 16;
}

__device__ __forceinline__ void load_matrices(unsigned (&to)[4], unsigned address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(address)
               : "memory");
}

__device__ __forceinline__ void load_turned_matrices(unsigned (&to)[4], unsigned address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(address)
               : "memory");
}

// `tile`: shared address, aligned to 1024. a of lines `first` to first + 15, values 32 `step` bytes
// into each line.
__device__ __forceinline__ void load_left_rows(unsigned (&a)[4], unsigned tile, int first,
                                               int step) {
  const int lane = threadIdx.x % 32;
  load_matrices(a, tile + line_piece(first + lane % 16, 2 * step + lane / 16));
}

// b of 16 columns, which are lines `first` to first + 15.
__device__ __forceinline__ void load_right_rows(unsigned (&b)[4], unsigned tile, int first,
                                                int step) {
  const int lane = threadIdx.x % 32, line = first + lane / 16 * 8 + lane % 8;
  load_matrices(b, tile + line_piece(line, 2 * step + lane / 8 % 2));
}

// The same of lines that have 64 values of m, one line for each of 64 values of k.
__device__ __forceinline__ void load_left_columns(unsigned (&a)[4], unsigned tile, int first,
                                                  int step) {
  const int lane = threadIdx.x % 32, line = 16 * step + lane / 16 * 8 + lane % 8;
  load_turned_matrices(a, tile + line_piece(line, first / 8 + lane / 8 % 2));
}

__device__ __forceinline__ void load_right_columns(unsigned (&b)[4], unsigned tile, int first,
                                                   int step) {
  const int lane = threadIdx.x % 32;
  load_turned_matrices(b, tile + line_piece(16 * step + lane % 16, first / 8 + lane / 16));
}

#define KF_MMA(SHAPE)                                                                              \
  asm("mma.sync.aligned." SHAPE " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "                  \
      "{%0, %1, %2, %3};"                                                                          \
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                             \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1))

template <class Element>
__device__ __forceinline__ void multiply_fragments(float* d, const unsigned (&a)[4], unsigned b0,
                                                   unsigned b1) {
  if constexpr (IS_BFLOAT16<Element>) {
    KF_MMA("m16n8k16.row.col.f32.bf16.bf16.f32");
  } else if constexpr (BYTES<Element> == 2) {
    KF_MMA("m16n8k16.row.col.f32.f16.f16.f32");
  } else if constexpr (IS_E5M2<Element>) {
    KF_MMA("m16n8k32.row.col.f32.e5m2.e5m2.f32");
  } else {
    KF_MMA("m16n8k32.row.col.f32.e4m3.e4m3.f32");
  }
}

}  // namespace kf
