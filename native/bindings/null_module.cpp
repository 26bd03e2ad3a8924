#include "device_kind.hpp"
#include "null_device.hpp"

PYBIND11_MODULE(_null, m) {
  m.doc() = "The null device kind.";
  kernel_foundry::bind_device_kind(m, {kernel_foundry::null_device_count,
                                       kernel_foundry::open_null_device,
                                       kernel_foundry::open_null_compiler});
}
