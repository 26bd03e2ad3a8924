// Facts of a device, as the CUDA driver reports them.
#pragma once

#include "cuda_abi.hpp"
#include "device.hpp"

namespace kernel_foundry {

[[nodiscard]] DeviceFacts cuda_facts(cuda::Ordinal device);

}  // namespace kernel_foundry
