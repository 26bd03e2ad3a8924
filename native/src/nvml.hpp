// NVIDIA's management library: clocks, and why they are low. Optional everywhere.
#pragma once

#include <memory>
#include <string>

#include "clocks.hpp"

namespace kernel_foundry {

// The clocks of the GPU with this UUID ("GPU-…"); null where the library or the GPU is not there.
// KERNEL_FOUNDRY_NVML names a replacement of the library.
[[nodiscard]] std::unique_ptr<Clocks> open_nvml_clocks(const std::string& uuid);

}  // namespace kernel_foundry
