#include "device_kind.hpp"
#include "sycl_device.hpp"

PYBIND11_MODULE(_sycl, m) {
  m.doc() = "The SYCL device kind.";
  kernel_foundry::bind_device_kind(m, {kernel_foundry::sycl_device_count,
                                       kernel_foundry::open_sycl_device,
                                       kernel_foundry::open_sycl_compiler});
}
