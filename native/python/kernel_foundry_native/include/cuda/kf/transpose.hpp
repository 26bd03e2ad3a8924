// Transposed matrices, such as operands of kf::Product<float> or of 8 bits with k outside.
//
// kf::transpose(x, out, rows, columns): out = x^T, planes x rows x columns of any format, for each
// plane. Launch: a grid of (cdiv(columns, 32), cdiv(rows, 32), planes) blocks of 256 threads.
#pragma once

namespace kf {

template <class T>
__device__ __forceinline__ void transpose(const T* __restrict__ x, T* __restrict__ out, int rows,
                                          int columns) {
  __shared__ T tile[32][33];
  const size_t plane = static_cast<size_t>(blockIdx.z) * rows * columns;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int left = blockIdx.x * 32, top = blockIdx.y * 32;
#pragma unroll
  for (int i = warp; i < 32; i += 8) {
    const int row = top + i, column = left + lane;
    if (row < rows && column < columns)
      tile[i][lane] = x[plane + static_cast<size_t>(row) * columns + column];
  }
  __syncthreads();
#pragma unroll
  for (int i = warp; i < 32; i += 8) {
    const int row = left + i, column = top + lane;
    if (row < columns && column < rows)
      out[plane + static_cast<size_t>(row) * rows + column] = tile[lane][i];
  }
}

}  // namespace kf
