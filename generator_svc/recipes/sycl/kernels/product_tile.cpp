{{ epilogue }}
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<2>))
void product_tiles({{ parameters }}) {
  const auto item = syclext::this_work_item::get_nd_item<2>();
  const int x = item.get_local_id(1), y = item.get_local_id(0);
  const int m = item.get_global_id(0), column = item.get_global_id(1);
  float* left = &staged[0];
  float* right = &staged[TILE * TILE];
  float sum = 0.0f;
  for (int base = 0; base < depth; base += TILE) {
    {
      const int k = base + x;
      left[y * TILE + x] = m < rows && k < depth ? {{ left }}[(size_t)m * depth + k] : 0.0f;
    }
    {
      const int k = base + y, n = column;
      right[y * TILE + x] = n < cols && k < depth ? {{ right }}[(size_t){{ right_at }}] : 0.0f;
    }
    sycl::group_barrier(item.get_group());
    for (int k = 0; k < TILE; ++k) sum += left[y * TILE + k] * right[k * TILE + x];
    sycl::group_barrier(item.get_group());
  }
  if (m < rows && column < cols) {
    const size_t at = (size_t)m * cols + column;
    {{ out }}[at] = finish(sum, at, column{{ call }});
  }
}
