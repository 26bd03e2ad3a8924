// Numbers of any format as float, and 16-byte loads and stores with guards at a row's end.
//
//   kf::to_float(x), kf::from_float<T>(x)       T: float, __half, __nv_bfloat16
//   kf::load_pack(row, column, columns, beyond, x)   fills x with pack_width<T> neighbours
//   kf::store_pack(row, column, columns, x)      writes those that are inside
//   kf::store4(row, column, columns, float4)     the same for four, as products hand them out
//   kf::load4(row, column, columns)              such as a bias; 0 beyond the end
//
// Whether a wide access is aligned is looked up, so any row of any length may be passed.
#pragma once

namespace kf {

template <class T, int N>
struct alignas(sizeof(T) * N) Pack {
  T v[N];
};

template <class T>
constexpr int pack_width = 16 / static_cast<int>(sizeof(T));

__device__ __forceinline__ float to_float(float x) { return x; }

template <class T>
__device__ __forceinline__ T from_float(float x) {
  return static_cast<T>(x);
}

#ifdef __CUDA_FP16_H__
__device__ __forceinline__ float to_float(__half x) { return __half2float(x); }
template <>
__device__ __forceinline__ __half from_float<__half>(float x) {
  return __float2half_rn(x);
}
#endif

#ifdef __CUDA_BF16_H__
__device__ __forceinline__ float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }
template <>
__device__ __forceinline__ __nv_bfloat16 from_float<__nv_bfloat16>(float x) {
  return __float2bfloat16_rn(x);
}
#endif

template <class T, int N>
__device__ __forceinline__ bool is_aligned(const T* at) {
  return reinterpret_cast<size_t>(at) % (sizeof(T) * N) == 0;
}

template <class T, int N>
__device__ __forceinline__ void load_pack(const T* __restrict__ row, int column, int columns,
                                          float beyond, float (&x)[N]) {
  if (column + N <= columns && is_aligned<T, N>(row)) {
    const Pack<T, N> pack = *reinterpret_cast<const Pack<T, N>*>(row + column);
#pragma unroll
    for (int i = 0; i < N; ++i) x[i] = to_float(pack.v[i]);
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i) x[i] = column + i < columns ? to_float(row[column + i]) : beyond;
  }
}

template <class T, int N>
__device__ __forceinline__ void store_pack(T* row, int column, int columns, const float (&x)[N]) {
  if (column + N <= columns && is_aligned<T, N>(row)) {
    Pack<T, N> pack;
#pragma unroll
    for (int i = 0; i < N; ++i) pack.v[i] = from_float<T>(x[i]);
    *reinterpret_cast<Pack<T, N>*>(row + column) = pack;
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      if (column + i < columns) row[column + i] = from_float<T>(x[i]);
    }
  }
}

template <class T>
__device__ __forceinline__ float4 load4(const T* __restrict__ row, int column, int columns) {
  float x[4];
  load_pack(row, column, columns, 0.0f, x);
  return make_float4(x[0], x[1], x[2], x[3]);
}

template <class T>
__device__ __forceinline__ void store4(T* row, int column, int columns, float4 v) {
  const float x[4] = {v.x, v.y, v.z, v.w};
  store_pack(row, column, columns, x);
}

}  // namespace kf
