#pragma unroll
  for (int i = 0; i < TM; ++i) {
    const int m = m0 + my_m + i / 4 * 16 + i % 4;
    if (ROWS % BM != 0 && m >= ROWS) continue;
#pragma unroll
    for (int j = 0; j < TN; j += VEC) {
      const int n = n0 + my_n + j / 4 * 32 + j % 4;
      if (COLS % BN != 0 && n >= COLS) continue;
      Pack product;
#pragma unroll
      for (int e = 0; e < VEC; ++e) product.v[e] = sums[i][j + e];
      const size_t at = (size_t)m * COLS + n;
      {% if is_split %}
      store(parts + (size_t)blockIdx.y * ROWS * COLS + at, product);
      {% else %}
      finish(product, at, n{{ call }});
      {% endif %}
    }
  }
}
