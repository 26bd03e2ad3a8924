// Changes inputs of a CUDA device between calls, and hides memory behind random bits.
#pragma once

#include <cstdint>
#include <vector>

#include "cuda_context.hpp"
#include "device.hpp"
#include "redraw.hpp"

namespace kernel_foundry {

class CudaRedraw {
 public:
  // Loads its kernel at once: later the process may be locked in. The context must be current.
  explicit CudaRedraw(const cuda::SharedContext& context);

  // Random bits over all ranges; the same once more takes them off.
  void mask(const std::vector<CoveredRange>& ranges, std::uint64_t key, cuda::Stream stream);
  void enqueue(std::uintptr_t address, const RedrawPass& pass, cuda::Stream stream);

 private:
  void launch(std::uintptr_t address, RedrawPass pass, cuda::Stream stream);

  cuda::UniqueModule module_;
  cuda::Function kernel_ = nullptr;
  cuda::Function mask_ = nullptr;
  unsigned most_groups_ = 0;
};

}  // namespace kernel_foundry
