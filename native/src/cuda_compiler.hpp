// CUDA C++ to a cubin and its PTX, for one architecture.
#pragma once

#include <memory>
#include <string>

#include "device.hpp"

namespace kernel_foundry {

// `architecture` such as "sm_90" needs no driver and no GPU; empty, the driver is asked for that of
// device `index`. Throws DriverUnavailableError when there is no NVRTC or it does not build for the
// architecture, std::invalid_argument when it is none.
[[nodiscard]] std::shared_ptr<Compiler> open_cuda_compiler(std::size_t index,
                                                           const std::string& architecture);

}  // namespace kernel_foundry
