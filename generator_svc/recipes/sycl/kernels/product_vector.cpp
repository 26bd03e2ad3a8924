#include <kf/product.hpp>
{{ epilogue }}
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void pack_panels(const float* __restrict__ right, float* __restrict__ panels, int cols, int depth) {
  kf::pack_panel<TN, kf::Layout::{{ layout }}>(kf::work_group(), right, panels, cols, depth);
}

extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void product_tiles({{ parameters }}) {
  kf::Product<TM, TN>::run(
      kf::work_group(), BLOCK, { {{ left }}, {{ right }}, rows, cols, depth },
      [&](int m, auto n, kf::Vector sum) {
        const size_t at = (size_t)m * cols;
        kf::store({{ out }} + at, n, finish(sum, at, n{{ call }}));
      });
}
