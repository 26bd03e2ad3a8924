extern "C" __global__ void __launch_bounds__(256) sum_parts({{ sum_parameters }}) {
  const size_t at = ((size_t)blockIdx.x * 256 + threadIdx.x) * VEC;
  if (at >= (size_t)ROWS * COLS) return;
  Pack product = load(parts + at);
#pragma unroll
  for (int part = 1; part < SPLIT; ++part) {
    const Pack more = load(parts + (size_t)part * ROWS * COLS + at);
#pragma unroll
    for (int j = 0; j < VEC; ++j) product.v[j] += more.v[j];
  }
  finish(product, at, at % COLS{{ call }});
}
