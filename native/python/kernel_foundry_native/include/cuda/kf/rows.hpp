// Rows of a matrix: in registers as a whole, or read once as a stream.
//
// kf::Row<THREADS, PACKS, T>: a row of at most THREADS * PACKS * 16 / sizeof(T) columns in the
// registers of THREADS threads: 32 (a warp a row, any number of warps a block) or all of the block.
//
//   row.load(pointer, columns, beyond)   beyond: what stands behind the end, neutral in reductions
//   row.each([=](float& x) { ... })      changes every value
//   row.each(columns, [=](float& x, int column) { ... })   those inside, with their column
//   row.each_pack([&](float (&x)[4], int column) { ... })   by neighbours, as load_pack reads
//   row.reduce(kf::Sum())                over all values; all threads get it
//   row.variance(mean, columns)          mean squared distance of those inside
//   row.store(pointer, columns)
//
// kf::scan_row<THREADS, PACKS>(pointer, columns, beyond, f): a row of any length; f(x) gets float
// (&x)[16 / sizeof(T)] at a time, PACKS loads are in flight. Add to a kf::Softmax, kf::Moments or a
// number of your own, then kf::group_reduce<THREADS>.
//
// First values to TUNE: THREADS 256, 128, 512 (32 below 1024 columns), PACKS from CONST as
// cdiv(columns, THREADS * width), 8 at most; above that scan_row with PACKS 4.
#pragma once

#include <kf/pack.hpp>
#include <kf/reduce.hpp>

namespace kf {

// Over THREADS threads: a warp for 32, else the block.
template <int THREADS, class T, class Operation>
__device__ __forceinline__ T group_reduce(T value, Operation operation) {
  if constexpr (THREADS == 32) {
    return warp_reduce(value, operation);
  } else {
    return block_reduce<THREADS>(value, operation);
  }
}

template <int THREADS, int PACKS, class T = float>
struct Row {
  static constexpr int WIDTH = pack_width<T>;
  float value[PACKS][WIDTH];

  static __device__ __forceinline__ int first_column(int pack) {
    return (pack * THREADS + static_cast<int>(threadIdx.x % THREADS)) * WIDTH;
  }

  __device__ __forceinline__ void load(const T* __restrict__ row, int columns, float beyond) {
#pragma unroll
    for (int p = 0; p < PACKS; ++p) load_pack(row, first_column(p), columns, beyond, value[p]);
  }

  __device__ __forceinline__ void store(T* row, int columns) const {
#pragma unroll
    for (int p = 0; p < PACKS; ++p) store_pack(row, first_column(p), columns, value[p]);
  }

  template <class Change>
  __device__ __forceinline__ void each(const Change& change) {
#pragma unroll
    for (int p = 0; p < PACKS; ++p) {
#pragma unroll
      for (int i = 0; i < WIDTH; ++i) change(value[p][i]);
    }
  }

  template <class Change>
  __device__ __forceinline__ void each(int columns, const Change& change) {
#pragma unroll
    for (int p = 0; p < PACKS; ++p) {
#pragma unroll
      for (int i = 0; i < WIDTH; ++i) {
        const int column = first_column(p) + i;
        if (column < columns) change(value[p][i], column);
      }
    }
  }

  // As `each`, by packs of WIDTH neighbours with the first one's column; some may be outside.
  template <class Change>
  __device__ __forceinline__ void each_pack(const Change& change) {
#pragma unroll
    for (int p = 0; p < PACKS; ++p) change(value[p], first_column(p));
  }

  template <class Operation>
  __device__ __forceinline__ float reduce(Operation operation) const {
    float all = value[0][0];
#pragma unroll
    for (int i = 1; i < PACKS * WIDTH; ++i) all = operation(all, value[i / WIDTH][i % WIDTH]);
    return group_reduce<THREADS>(all, operation);
  }

  __device__ __forceinline__ float variance(float mean, int columns) {
    float squares = 0.0f;
    each(columns, [&](float x, int) { squares += (x - mean) * (x - mean); });
    return group_reduce<THREADS>(squares, Sum()) / static_cast<float>(columns);
  }
};

template <int THREADS, int PACKS, class T, class Take>
__device__ __forceinline__ void scan_row(const T* __restrict__ row, int columns, float beyond,
                                         Take&& take) {
  constexpr int WIDTH = pack_width<T>, STEP = THREADS * WIDTH;
  const int begin = static_cast<int>(threadIdx.x % THREADS) * WIDTH;
  for (int column = begin; column < columns; column += PACKS * STEP) {
    float x[PACKS][WIDTH];
#pragma unroll
    for (int p = 0; p < PACKS; ++p) load_pack(row, column + p * STEP, columns, beyond, x[p]);
#pragma unroll
    for (int p = 0; p < PACKS; ++p) take(x[p]);
  }
}

}  // namespace kf
