#include <mma.h>
extern "C" __global__ void mm(const half* a, const half* b, float* c, int n, int k) {
  using namespace nvcuda::wmma;
  fragment<matrix_a, 16, 16, 16, half, row_major> fa;
  fragment<matrix_b, 16, 16, 16, half, row_major> fb;
  fragment<accumulator, 16, 16, 16, float> fc;
  fill_fragment(fc, 0.0f);
  const int row = blockIdx.y * 16, col = (blockIdx.x * blockDim.x + threadIdx.x) / 32 * 16;
  for (int t = 0; t < k; t += 16) {
    load_matrix_sync(fa, a + row * k + t, k);
    load_matrix_sync(fb, b + t * n + col, n);
    mma_sync(fc, fa, fb, fc);
  }
  store_matrix_sync(c + row * n + col, fc, n, mem_row_major);
}
