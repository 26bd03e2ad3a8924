// Many stretches of device memory at once: filled, or looked through for another byte.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "cuda_context.hpp"
#include "device.hpp"

namespace kernel_foundry {

// What surrounds a few dozen tensors is hundreds of stretches of some kilobytes: filled one by one
// they would take longer than most calls.
class CudaRanges {
 public:
  // Loads its kernels at once: later the process may be locked in. The context must be current.
  explicit CudaRanges(const cuda::SharedContext& context);

  void fill(const std::vector<ByteRange>& ranges, cuda::Stream stream);
  // Index of a range with a byte that is not its own; waits.
  [[nodiscard]] std::optional<std::size_t> find_other(const std::vector<ByteRange>& ranges,
                                                      cuda::Stream stream);

 private:
  void launch(cuda::Function function, const std::vector<ByteRange>& ranges, std::size_t from,
              unsigned groups, bool finds, cuda::Stream stream);

  cuda::UniqueModule module_;
  cuda::Function fill_ = nullptr;
  cuda::Function find_ = nullptr;
  cuda::UniqueHostMemory found_;  // that the device writes to as well
  cuda::Address found_address_ = 0;
};

}  // namespace kernel_foundry
