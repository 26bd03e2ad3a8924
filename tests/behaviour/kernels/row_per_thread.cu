extern "C" __global__ void rows(const float* x, float* out, int rows, int cols) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float top = -INFINITY;
  for (int i = 0; i < cols; ++i) top = fmaxf(top, x[row * cols + i]);
  float sum = 0.0f;
  for (int i = 0; i < cols; ++i) sum += expf(x[row * cols + i] - top);
  for (int i = 0; i < cols; ++i) out[row * cols + i] = expf(x[row * cols + i] - top) / sum;
}
