#include <cuda_pipeline_primitives.h>
#define T 32
extern "C" __global__ void mm(const float* a, const float* b, float* c, int m, int n, int k) {
  __shared__ float ta[2][T][T], tb[2][T][T];
  const int row = blockIdx.y * T + threadIdx.y, col = blockIdx.x * T + threadIdx.x;
  float sum = 0.0f;
  int stage = 0;
  for (int t = 0; t < k; t += T, stage ^= 1) {
    __pipeline_memcpy_async(&ta[stage][threadIdx.y][threadIdx.x], &a[row * k + t + threadIdx.x], 4);
    __pipeline_memcpy_async(&tb[stage][threadIdx.y][threadIdx.x], &b[(t + threadIdx.y) * n + col], 4);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    for (int q = 0; q < T; ++q) sum += ta[stage][threadIdx.y][q] * tb[stage][q][threadIdx.x];
  }
  if (row < m && col < n) c[row * n + col] = sum;
}
