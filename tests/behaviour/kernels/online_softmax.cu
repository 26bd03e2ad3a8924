extern "C" __global__ void rows(const float* x, float* out, int rows, int cols) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float top = -INFINITY, sum = 0.0f;
  for (int i = 0; i < cols; ++i) {
    const float v = x[i * rows + row];
    const float next = fmaxf(top, v);
    sum = sum * expf(top - next) + expf(v - next);
    top = next;
  }
  for (int i = 0; i < cols; ++i) out[i * rows + row] = expf(x[i * rows + row] - top) / sum;
}
