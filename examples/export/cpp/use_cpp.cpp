// Softmax of rows on a GPU, from C++ without a CUDA toolkit. With one, cudaMalloc and cudaMemcpy of
// the CUDA runtime take the place of the driver's functions here.
#include <cstddef>
#include <cstdio>
#include <vector>

#include "fast_softmax.h"

extern "C" {
int cuInit(unsigned flags);
int cuDevicePrimaryCtxRetain(void** context, int device);
int cuCtxSetCurrent(void* context);
int cuMemAlloc_v2(unsigned long long* address, std::size_t bytes);
int cuMemcpyAsync(unsigned long long to, unsigned long long from, std::size_t bytes, void* stream);
int cuStreamCreate(void** stream, unsigned flags);
int cuStreamSynchronize(void* stream);
}

int main() {
  const std::size_t rows = 64, cols = 4096, bytes = rows * cols * sizeof(float);
  std::vector<float> values(rows * cols, 1.0f);
  void *context = nullptr, *stream = nullptr;
  unsigned long long x = 0, out = 0;
  if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
      cuStreamCreate(&stream, 0) || cuMemAlloc_v2(&x, bytes) || cuMemAlloc_v2(&out, bytes)) {
    return std::puts("no GPU with memory"), 1;
  }
  const auto host = reinterpret_cast<unsigned long long>(values.data());
  cuMemcpyAsync(x, host, bytes, stream);

  fast_softmax_kernels* kernels = nullptr;
  fast_softmax_call call{};
  call.x = reinterpret_cast<const float*>(x);
  call.out = reinterpret_cast<float*>(out);
  call.batch = rows;
  call.dim = cols;
  if (fast_softmax_open(0, &kernels) || fast_softmax_launch(kernels, &call, stream)) {
    return std::puts(fast_softmax_error()), 1;
  }
  cuMemcpyAsync(host, out, bytes, stream);
  cuStreamSynchronize(stream);
  std::printf("the first of %zu equal shares is %g\n", cols, values[0]);
  fast_softmax_close(kernels);
  return 0;
}
