// A device that is always there: it "compiles" any text and knows a handful of kernels by name,
// so that everything above it runs on a machine without SYCL and without a GPU.
#pragma once

#include <memory>
#include <string>

#include "device.hpp"

namespace kernel_foundry {

// Kernels called `null_copy` and `null_relu` take (const float* in, float* out, int count) and do
// what they say; every other kernel does nothing.
[[nodiscard]] std::shared_ptr<Device> open_null_device(std::size_t index);
// `architecture` is "null" or empty, else std::invalid_argument.
[[nodiscard]] std::shared_ptr<Compiler> open_null_compiler(std::size_t index,
                                                           const std::string& architecture);
// As many as KERNEL_FOUNDRY_NULL_DEVICES says, else one.
[[nodiscard]] std::size_t null_device_count();

}  // namespace kernel_foundry
