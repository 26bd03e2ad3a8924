extern "C" __global__ void __launch_bounds__(TILE * TILE) product_tiles({{ parameters }}) {
  __shared__ float left[TILE][TILE + 1], right[TILE][TILE + 1];
  const int x = threadIdx.x, y = threadIdx.y;
  const int row = blockIdx.y * TILE + y, column = blockIdx.x * TILE + x;
  float sum = 0.0f;
  for (int base = 0; base < DEPTH; base += TILE) {
    {
      const int m = row, k = base + x;
      left[y][x] = m < ROWS && k < DEPTH ? {{ left }}[(size_t)m * DEPTH + k] : 0.0f;
    }
    {
      const int n = {{ staged_n }}, k = {{ staged_k }};
      right[k - base][n - blockIdx.x * TILE] = n < COLS && k < DEPTH ? {{ right }}[{{ right_at }}] : 0.0f;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < TILE; ++k) sum = fmaf(left[y][k], right[k][x], sum);
    __syncthreads();
  }
  if (row < ROWS && column < COLS) {
    Pack product;
    product.v[0] = sum;
    finish(product, (size_t)row * COLS + column, column{{ call }});
  }
}
