#include "cuda_compiler.hpp"
#include "cuda_device.hpp"
#include "device_kind.hpp"

PYBIND11_MODULE(_cuda, m) {
  m.doc() = "The CUDA device kind.";
  kernel_foundry::bind_device_kind(m, {kernel_foundry::cuda_device_count,
                                       kernel_foundry::open_cuda_device,
                                       kernel_foundry::open_cuda_compiler});
}
