// float32 products at the rate of the 16-bit tensor cores: each operand as the sum of two __half.
//
// A row (of A) or column (of B) is scaled by a power of two that brings its largest value to 2^14,
// and x becomes high = half(x), low = half(x - high): 22 bits for what is no smaller than 2^-17 of
// the largest. high * high + high * low + low * high, and sums in registers every 64 values of k,
// give about 21 bits. Two bfloat16 would give 16 to 18. Infinities make rows of NaN.
//
//   kf::split_rows<THREADS>     an operand with k contiguous (MK, NK): one block a row
//   kf::column_maxima, kf::split_columns   one with k outside (KN): maxima first, 0 before
//   kf::SplitProduct<...>::run  the product of what they wrote
//
// Parts: batches x 2 x rows x `padded` of __half, high before low; `padded` is the number of
// columns rounded up to a multiple of 8. Exponents: one int for each row (column) of each batch.
#pragma once

#include <kf/product.hpp>
#include <kf/reduce.hpp>

namespace kf {

// x * 2^exponent, for exponents up to 250; below -250 the result is 0 anyway.
__device__ __forceinline__ float times_power(float x, int exponent) {
  exponent = max(exponent, -250);
  const int half = exponent / 2;
  return x * __int_as_float((half + 127) << 23) * __int_as_float((exponent - half + 127) << 23);
}

// The power of two that brings a maximum below 2^15; `bits` are those of an absolute value.
__device__ __forceinline__ int split_exponent(unsigned bits) {
  return bits == 0 ? 0 : max(static_cast<int>(bits >> 23), 1) - 127 - 14;
}

struct Halves {
  __half high, low;
};

__device__ __forceinline__ Halves split(float x, int exponent) {
  const float scaled = times_power(x, -exponent);
  const __half high = __float2half_rn(scaled);
  return {high, __float2half_rn(scaled - __half2float(high))};
}

// Writes four neighbours; `high` and `low` are 8-byte aligned.
__device__ __forceinline__ void store_split(__half* high, __half* low, float4 x, int exponent) {
  struct alignas(8) Four {
    __half v[4];
  };
  const Halves a = split(x.x, exponent), b = split(x.y, exponent);
  const Halves c = split(x.z, exponent), d = split(x.w, exponent);
  *reinterpret_cast<Four*>(high) = {a.high, b.high, c.high, d.high};
  *reinterpret_cast<Four*>(low) = {a.low, b.low, c.low, d.low};
}

// Four neighbours of a row; what is outside is 0.
__device__ __forceinline__ float4 load_four(const float* row, int column, int columns) {
  if (columns % 4 == 0) {
    return column < columns ? *reinterpret_cast<const float4*>(row + column)
                            : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  }
  return make_float4(
      column < columns ? row[column] : 0.0f, column + 1 < columns ? row[column + 1] : 0.0f,
      column + 2 < columns ? row[column + 2] : 0.0f, column + 3 < columns ? row[column + 3] : 0.0f);
}

__device__ __forceinline__ unsigned magnitude(float4 x) {
  const float largest = fmaxf(fmaxf(fabsf(x.x), fabsf(x.y)), fmaxf(fabsf(x.z), fabsf(x.w)));
  return __float_as_uint(largest);
}

// Block `blockIdx.x` splits row `blockIdx.x` of batches x rows x columns. Launch: batches * rows
// blocks of THREADS (256).
template <int THREADS>
__device__ __forceinline__ void split_rows(const float* __restrict__ x, __half* __restrict__ parts,
                                           int* __restrict__ exponents, int rows, int columns,
                                           int padded) {
  const int batch = blockIdx.x / rows, row = blockIdx.x - batch * rows;
  const float* const from = x + static_cast<size_t>(blockIdx.x) * columns;
  unsigned largest = 0;
  for (int i = threadIdx.x * 4; i < columns; i += THREADS * 4) {
    largest = max(largest, magnitude(load_four(from, i, columns)));
  }
  const int exponent = split_exponent(block_reduce<THREADS>(largest, Max()));
  if (threadIdx.x == 0) exponents[blockIdx.x] = exponent;
  __half* const high = parts + (static_cast<size_t>(batch) * 2 * rows + row) * padded;
  __half* const low = high + static_cast<size_t>(rows) * padded;
  for (int i = threadIdx.x * 4; i < padded; i += THREADS * 4) {
    store_split(high + i, low + i, load_four(from, i, columns), exponent);
  }
}

// Raises maxima[batch][column], 0 before, to the largest magnitudes as bits. Launch: a grid of
// (cdiv(columns, 128), cdiv(rows, ROWS), batches) blocks of 256 threads, ROWS such as 128.
template <int ROWS>
__device__ __forceinline__ void
column_maxima(const float* __restrict__ x, unsigned* __restrict__ maxima, int rows, int columns) {
  __shared__ unsigned shared[8][132];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int column = blockIdx.x * 128 + lane * 4;
  const float* const from = x + static_cast<size_t>(blockIdx.z) * rows * columns;
  float4 largest = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll 4
  for (int i = warp; i < ROWS; i += 8) {
    const int row = blockIdx.y * ROWS + i;
    if (row >= rows) break;
    const float4 v = load_four(from + static_cast<size_t>(row) * columns, column, columns);
    largest.x = fmaxf(largest.x, fabsf(v.x));
    largest.y = fmaxf(largest.y, fabsf(v.y));
    largest.z = fmaxf(largest.z, fabsf(v.z));
    largest.w = fmaxf(largest.w, fabsf(v.w));
  }
  *reinterpret_cast<float4*>(&shared[warp][lane * 4]) = largest;
  __syncthreads();
  if (threadIdx.x < 128 && blockIdx.x * 128 + threadIdx.x < columns) {
    unsigned most = 0;
    for (int i = 0; i < 8; ++i) most = max(most, shared[i][threadIdx.x]);
    atomicMax(maxima + static_cast<size_t>(blockIdx.z) * columns + blockIdx.x * 128 + threadIdx.x,
              most);
  }
}

// Splits by columns, with the maxima of `column_maxima`. Launch: a grid of
// (cdiv(padded, 1024), rows, batches) blocks of 256 threads; writes exponents too.
__device__ __forceinline__ void split_columns(const float* __restrict__ x,
                                              const unsigned* __restrict__ maxima,
                                              __half* __restrict__ parts,
                                              int* __restrict__ exponents, int rows, int columns,
                                              int padded) {
  const int column = (blockIdx.x * 256 + threadIdx.x) * 4, row = blockIdx.y, batch = blockIdx.z;
  if (column >= padded) return;
  const float* const from = x + (static_cast<size_t>(batch) * rows + row) * columns;
  const float4 v = load_four(from, column, columns);
  const float value[4] = {v.x, v.y, v.z, v.w};
  struct alignas(8) Four {
    __half v[4];
  } high, low;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const size_t at = static_cast<size_t>(batch) * columns + column + i;
    const bool inside = column + i < columns;
    const int exponent = inside ? split_exponent(maxima[at]) : 0;
    if (inside && row == 0) exponents[at] = exponent;
    const Halves both = split(value[i], exponent);
    high.v[i] = both.high;
    low.v[i] = both.low;
  }
  __half* const to = parts + (static_cast<size_t>(batch) * 2 * rows + row) * padded + column;
  *reinterpret_cast<Four*>(to) = high;
  *reinterpret_cast<Four*>(to + static_cast<size_t>(rows) * padded) = low;
}

// The product of two split operands; m, n and k are those of the result, not the padded ones.
template <int TILE_M, int TILE_N, int STAGES, Layout A_LAYOUT = Layout::MK,
          Layout B_LAYOUT = Layout::NK>
struct SplitProduct
    : ProductOf<__half, TILE_M, TILE_N, STAGES, A_LAYOUT, B_LAYOUT, 2, Sums::REGISTERS> {
  using Base = ProductOf<__half, TILE_M, TILE_N, STAGES, A_LAYOUT, B_LAYOUT, 2, Sums::REGISTERS>;

  template <class Store>
  static __device__ __forceinline__ void run(const typename Base::Operands& of,
                                             const int* a_exponents, const int* b_exponents,
                                             const Store& store) {
    Base::run(of, scaled(of, a_exponents, b_exponents, store));
  }

  // `store` of results that are scaled back.
  template <class Store>
  static __device__ __forceinline__ auto scaled(const typename Base::Operands& of,
                                                const int* a_exponents, const int* b_exponents,
                                                const Store& store) {
    return [=](int row, int column, float4 v) {
      const int left = a_exponents[row];
      const int* const right = b_exponents + (row / of.m) * of.n + column;
      v.x = times_power(v.x, left + right[0]);
      if (column + 1 < of.n) v.y = times_power(v.y, left + right[1]);
      if (column + 2 < of.n) v.z = times_power(v.z, left + right[2]);
      if (column + 3 < of.n) v.w = times_power(v.w, left + right[3]);
      store(row, column, v);
    };
  }
};

}  // namespace kf
