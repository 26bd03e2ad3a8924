// Changes inputs of a CUDA device between calls.
#pragma once

#include <cstdint>

#include "cuda_context.hpp"
#include "redraw.hpp"

namespace kernel_foundry {

class CudaRedraw {
 public:
  // Loads its kernel at once: later the process may be locked in. The context must be current.
  explicit CudaRedraw(const cuda::SharedContext& context);

  void enqueue(std::uintptr_t address, const RedrawPass& pass, cuda::Stream stream);

 private:
  void launch(std::uintptr_t address, RedrawPass pass, cuda::Stream stream);

  cuda::UniqueModule module_;
  cuda::Function kernel_ = nullptr;
  unsigned most_groups_ = 0;
};

}  // namespace kernel_foundry
