{{ epilogue }}
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void product_tiles({{ parameters }}) {
  constexpr int WIDTH = TN;
{% include "sycl/kernels/vector_place.hpp" %}
  const float* left[TM];
  const float* right[TN];
  for (int r = 0; r < TM; ++r) {
    left[r] = {{ left }} + (size_t)(m0 + r < rows ? m0 + r : rows - 1) * depth;
  }
  for (int c = 0; c < TN; ++c) {
    right[c] = {{ right }} + (size_t)(n0 + c < cols ? n0 + c : cols - 1) * depth;
  }
  vec16 sums[TM][TN] = {};
  int k = 0;
  for (; k + 16 <= depth; k += 16) {
    vec16 a[TM];
#pragma unroll
    for (int r = 0; r < TM; ++r) a[r] = load(left[r], k);
#pragma unroll
    for (int c = 0; c < TN; ++c) {
      const vec16 b = load(right[c], k);
#pragma unroll
      for (int r = 0; r < TM; ++r) sums[r][c] += a[r] * b;
    }
  }
  for (int r = 0; r < TM && m0 + r < rows; ++r) {
    for (int c = 0; c < TN && n0 + c < cols; ++c) {
      float sum = 0.0f;
      for (int j = 0; j < 16; ++j) sum += sums[r][c][j];
      for (int j = k; j < depth; ++j) sum += left[r][j] * right[c][j];
      const size_t at = (size_t)(m0 + r) * cols + n0 + c;
      {{ out }}[at] = finish(sum, at, n0 + c{{ call }});
    }
  }
}
