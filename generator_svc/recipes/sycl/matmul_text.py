"""SYCL bodies of matrix products; `@NAME@` marks what the recipe fills in."""

KERNEL = "product_tiles"

TILE = 16
"""Edge of a tile in local memory, in elements."""

_ITEM = """\
@EPILOGUE@
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void product_tiles(@PARAMETERS@) {
  const auto item = syclext::this_work_item::get_nd_item<1>();
  const size_t at = item.get_global_id(0);
  if (at >= (size_t)rows * cols) return;
  const int m = at / cols, n = at % cols;
  float sum = 0.0f;
  const float* left = @LEFT@ + (size_t)m * depth;
  for (int k = 0; k < depth; ++k) sum += left[k] * @RIGHT@[(size_t)@RIGHT_AT@];
  @OUT@[at] = finish(sum, at, n@CALL@);
}
"""

_TILE = """\
@EPILOGUE@
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<2>))
void product_tiles(@PARAMETERS@) {
  const auto item = syclext::this_work_item::get_nd_item<2>();
  const int x = item.get_local_id(1), y = item.get_local_id(0);
  const int m = item.get_global_id(0), column = item.get_global_id(1);
  float* left = &staged[0];
  float* right = &staged[TILE * TILE];
  float sum = 0.0f;
  for (int base = 0; base < depth; base += TILE) {
    {
      const int k = base + x;
      left[y * TILE + x] = m < rows && k < depth ? @LEFT@[(size_t)m * depth + k] : 0.0f;
    }
    {
      const int k = base + y, n = column;
      right[y * TILE + x] = n < cols && k < depth ? @RIGHT@[(size_t)@RIGHT_AT@] : 0.0f;
    }
    sycl::group_barrier(item.get_group());
    for (int k = 0; k < TILE; ++k) sum += left[y * TILE + k] * right[k * TILE + x];
    sycl::group_barrier(item.get_group());
  }
  if (m < rows && column < cols) {
    const size_t at = (size_t)m * cols + column;
    @OUT@[at] = finish(sum, at, column@CALL@);
  }
}
"""

# Tiles are numbered so that SUPER x SUPER neighbours follow each other and share the cache.
_PLACE = """\
  const auto item = syclext::this_work_item::get_nd_item<1>();
  const int id = item.get_global_id(0), group = id / (SUPER * SUPER), inner = id % (SUPER * SUPER);
  const int across = (cols + WIDTH * SUPER - 1) / (WIDTH * SUPER);
  const int m0 = (group / across * SUPER + inner / SUPER) * TM;
  const int n0 = (group % across * SUPER + inner % SUPER) * WIDTH;
  if (m0 >= rows || n0 >= cols) return;
"""

_VECTOR_ROWS = (
    """\
@EPILOGUE@
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void product_tiles(@PARAMETERS@) {
  constexpr int WIDTH = TN;
"""
    + _PLACE
    + """\
  const float* left[TM];
  const float* right[TN];
  for (int r = 0; r < TM; ++r) {
    left[r] = @LEFT@ + (size_t)(m0 + r < rows ? m0 + r : rows - 1) * depth;
  }
  for (int c = 0; c < TN; ++c) {
    right[c] = @RIGHT@ + (size_t)(n0 + c < cols ? n0 + c : cols - 1) * depth;
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
      @OUT@[at] = finish(sum, at, n0 + c@CALL@);
    }
  }
}
"""
)

_VECTOR_COLUMNS = (
    """\
@EPILOGUE@
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void product_tiles(@PARAMETERS@) {
  constexpr int WIDTH = TN * 16;
"""
    + _PLACE
    + """\
  const float* left[TM];
  for (int r = 0; r < TM; ++r) {
    left[r] = @LEFT@ + (size_t)(m0 + r < rows ? m0 + r : rows - 1) * depth;
  }
  if (n0 + WIDTH <= cols) {
    vec16 sums[TM][TN] = {};
    for (int k = 0; k < depth; ++k) {
#pragma unroll
      for (int c = 0; c < TN; ++c) {
        const vec16 b = load(@RIGHT@ + (size_t)k * cols + n0, c * 16);
#pragma unroll
        for (int r = 0; r < TM; ++r) sums[r][c] += left[r][k] * b;
      }
    }
    for (int r = 0; r < TM && m0 + r < rows; ++r) {
      for (int c = 0; c < WIDTH; ++c) {
        const size_t at = (size_t)(m0 + r) * cols + n0 + c;
        @OUT@[at] = finish(sums[r][c / 16][c % 16], at, n0 + c@CALL@);
      }
    }
    return;
  }
  for (int r = 0; r < TM && m0 + r < rows; ++r) {
    for (int n = n0; n < cols; ++n) {
      float sum = 0.0f;
      for (int k = 0; k < depth; ++k) sum += left[r][k] * @RIGHT@[(size_t)k * cols + n];
      const size_t at = (size_t)(m0 + r) * cols + n;
      @OUT@[at] = finish(sum, at, n@CALL@);
    }
  }
}
"""
)

BODIES = {
    ("item", ""): _ITEM,
    ("tile", ""): _TILE,
    ("vector", "rows"): _VECTOR_ROWS,
    ("vector", "columns"): _VECTOR_COLUMNS,
}
"""(who, how the right operand is stored for vectors) to kernel text."""
