extern "C" __global__ void __launch_bounds__(BLOCK) product_tiles({{ parameters }}) {
  const size_t at = (size_t)blockIdx.x * BLOCK + threadIdx.x;
  if (at >= (size_t)ROWS * COLS) return;
  const int m = at / COLS, n = at % COLS;
  float sum = 0.0f;
  for (int k = 0; k < DEPTH; ++k) {
    sum = fmaf({{ left }}[(size_t)m * DEPTH + k], {{ right }}[{{ right_at }}], sum);
  }
  Pack product;
  product.v[0] = sum;
  finish(product, at, n{{ call }});
}
