extern "C" __global__ void sums(const float* x, float* out, int rows, int cols) {
  const int row = blockIdx.x * blockDim.y + threadIdx.y;
  if (row >= rows) return;
  float sum = 0.0f;
  for (int i = threadIdx.x; i < cols; i += 32) sum += x[(size_t)row * cols + i];
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  if (threadIdx.x == 0) out[row] = sum;
}
