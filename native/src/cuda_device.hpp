// CUDA devices: the primary context, one stream, events, graphs.
#pragma once

#include <memory>

#include "device.hpp"

namespace kernel_foundry {

// Both throw DriverUnavailableError with all that was tried when there is no driver.
[[nodiscard]] std::shared_ptr<Device> open_cuda_device(std::size_t index);
[[nodiscard]] std::size_t cuda_device_count();

}  // namespace kernel_foundry
