// Running results (scans) over a warp, a block or a row of any length: cumulative sums and the
// like.
//
//   kf::warp_prefix(value, kf::Sum())   of this lane and those before it
//   kf::block_before<THREADS>(value, neutral, kf::Sum(), total)   of the threads before this one in
//       a block of THREADS = blockDim.x threads, `neutral` for the first; `total` is that of all
//   kf::prefix_row<THREADS>(row, columns, neutral, kf::Sum(), store)   of a row, by a block that
//       reads it once; store(column, x) gets float (&x)[16 / sizeof(T)] from `column` on, some of
//       them behind the end, as kf::store_pack knows
//
// Values and operations are those of kf/reduce.hpp; `neutral` is 0 for Sum, -INFINITY for Max. All
// threads have to call. First values to TUNE: THREADS 256, 512, 1024.
#pragma once

#include <kf/pack.hpp>
#include <kf/reduce.hpp>

namespace kf {

// What the lane `step` before has; the first ones get their own.
template <class T>
__device__ __forceinline__ T shuffle_up(T value, int step) {
  static_assert(sizeof(T) % 4 == 0, "values of 4 bytes, or structs of them");
  constexpr int WORDS = sizeof(T) / 4;
  unsigned words[WORDS];
  memcpy(words, &value, sizeof(T));
#pragma unroll
  for (int i = 0; i < WORDS; ++i) words[i] = __shfl_up_sync(0xffffffffu, words[i], step);
  memcpy(&value, words, sizeof(T));
  return value;
}

template <class T, class Operation>
__device__ __forceinline__ T warp_prefix(T value, Operation operation) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const T before = shuffle_up(value, step);
    if (lane >= step) value = operation(before, value);
  }
  return value;
}

template <int THREADS, class T, class Operation>
__device__ __forceinline__ T block_before(T value, T neutral, Operation operation, T& total) {
  static_assert(THREADS % 32 == 0 && THREADS <= 1024, "whole warps");
  constexpr int WARPS = THREADS / 32, WORDS = sizeof(T) / 4;
  __shared__ unsigned partial[WARPS * WORDS];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const T so_far = warp_prefix(value, operation);
  if (lane == 31) memcpy(partial + warp * WORDS, &so_far, sizeof(T));
  T before = shuffle_up(so_far, 1), of_warps = neutral;
  __syncthreads();
  total = neutral;
#pragma unroll
  for (int i = 0; i < WARPS; ++i) {
    if (i == warp) of_warps = total;
    T other;
    memcpy(&other, partial + i * WORDS, sizeof(T));
    total = operation(total, other);
  }
  __syncthreads();  // the next one writes there
  return lane == 0 ? of_warps : operation(of_warps, before);
}

template <int THREADS, class T, class Operation, class Store>
__device__ __forceinline__ void prefix_row(const T* __restrict__ row, int columns, float neutral,
                                           Operation operation, const Store& store) {
  constexpr int WIDTH = pack_width<T>;
  float carry = neutral, ahead[WIDTH];
  load_pack(row, static_cast<int>(threadIdx.x) * WIDTH, columns, neutral, ahead);
  for (int first = 0; first < columns; first += THREADS * WIDTH) {
    const int column = first + static_cast<int>(threadIdx.x) * WIDTH;
    float x[WIDTH], total;
#pragma unroll
    for (int i = 0; i < WIDTH; ++i) x[i] = ahead[i];
    // The next ones are on their way while these are added.
    load_pack(row, column + THREADS * WIDTH, columns, neutral, ahead);
#pragma unroll
    for (int i = 1; i < WIDTH; ++i) x[i] = operation(x[i - 1], x[i]);
    const float before = block_before<THREADS>(x[WIDTH - 1], neutral, operation, total);
    const float offset = operation(carry, before);
#pragma unroll
    for (int i = 0; i < WIDTH; ++i) x[i] = operation(offset, x[i]);
    if (column < columns) store(column, x);
    carry = operation(carry, total);
  }
}

}  // namespace kf
