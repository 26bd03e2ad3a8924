// A device that is always there: it "compiles" any text and knows a handful of kernels by name,
// so that everything above it runs on a machine without SYCL and without a GPU.
#pragma once

#include <memory>

#include "device.hpp"

namespace kernel_foundry {

// Kernels called `null_copy` and `null_relu` take (const float* in, float* out, int count) and do
// what they say; every other kernel does nothing.
[[nodiscard]] std::shared_ptr<Device> open_null_device(std::size_t index);
[[nodiscard]] std::size_t null_device_count();

}  // namespace kernel_foundry
