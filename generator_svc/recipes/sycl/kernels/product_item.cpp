{{ epilogue }}
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void product_tiles({{ parameters }}) {
  const auto item = syclext::this_work_item::get_nd_item<1>();
  const size_t at = item.get_global_id(0);
  if (at >= (size_t)rows * cols) return;
  const int m = at / cols, n = at % cols;
  float sum = 0.0f;
  const float* left = {{ left }} + (size_t)m * depth;
  for (int k = 0; k < depth; ++k) sum += left[k] * {{ right }}[(size_t){{ right_at }}];
  {{ out }}[at] = finish(sum, at, n{{ call }});
}
