// SYCL devices: source to SPIR-V by run-time compilation, SPIR-V to kernels, launches.
#pragma once

#include <memory>
#include <string>

#include "device.hpp"

namespace kernel_foundry {

// Device `index` of those that share memory with the host (CPU devices first).
[[nodiscard]] std::shared_ptr<Device> open_sycl_device(std::size_t index);
// `architecture` is the device's own or empty, else std::invalid_argument.
[[nodiscard]] std::shared_ptr<Compiler> open_sycl_compiler(std::size_t index,
                                                           const std::string& architecture);
[[nodiscard]] std::size_t sycl_device_count();

}  // namespace kernel_foundry
