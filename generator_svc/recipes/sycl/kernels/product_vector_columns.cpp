{{ epilogue }}
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void product_tiles({{ parameters }}) {
  constexpr int WIDTH = TN * 16;
{% include "sycl/kernels/vector_place.hpp" %}
  const float* left[TM];
  for (int r = 0; r < TM; ++r) {
    left[r] = {{ left }} + (size_t)(m0 + r < rows ? m0 + r : rows - 1) * depth;
  }
  if (n0 + WIDTH <= cols) {
    vec16 sums[TM][TN] = {};
    for (int k = 0; k < depth; ++k) {
#pragma unroll
      for (int c = 0; c < TN; ++c) {
        const vec16 b = load({{ right }} + (size_t)k * cols + n0, c * 16);
#pragma unroll
        for (int r = 0; r < TM; ++r) sums[r][c] += left[r][k] * b;
      }
    }
    for (int r = 0; r < TM && m0 + r < rows; ++r) {
      for (int c = 0; c < WIDTH; ++c) {
        const size_t at = (size_t)(m0 + r) * cols + n0 + c;
        {{ out }}[at] = finish(sums[r][c / 16][c % 16], at, n0 + c{{ call }});
      }
    }
    return;
  }
  for (int r = 0; r < TM && m0 + r < rows; ++r) {
    for (int n = n0; n < cols; ++n) {
      float sum = 0.0f;
      for (int k = 0; k < depth; ++k) sum += left[r][k] * {{ right }}[(size_t)k * cols + n];
      const size_t at = (size_t)(m0 + r) * cols + n;
      {{ out }}[at] = finish(sum, at, n{{ call }});
    }
  }
}
