// NVRTC, loaded when it is first asked for: CUDA C++ to a cubin. Needs neither a driver nor a GPU.
#pragma once

#include <string>
#include <vector>

namespace kernel_foundry::nvrtc {

// Compute capabilities that it builds for, such as 90. Throws DriverUnavailableError.
[[nodiscard]] const std::vector<int>& architectures();

// Such as "nvrtc 13.0". Throws DriverUnavailableError.
[[nodiscard]] std::string version();

struct Built {
  std::string cubin;
  std::string ptx;
  std::string log;
};

// Throws CompileError with the log, DriverError when NVRTC itself fails.
[[nodiscard]] Built build(const std::string& source, const std::vector<std::string>& options);

}  // namespace kernel_foundry::nvrtc
