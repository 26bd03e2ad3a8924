// What the CUDA driver tells of a device.
#pragma once

#include "cuda_abi.hpp"
#include "device.hpp"

namespace kernel_foundry {

[[nodiscard]] DeviceFacts cuda_facts(cuda::Ordinal device);

}  // namespace kernel_foundry
