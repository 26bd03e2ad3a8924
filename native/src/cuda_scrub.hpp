// Overwrites what a kernel would find in shared memory from the launches before it.
#pragma once

#include "cuda_context.hpp"

namespace kernel_foundry {

// Shared memory is not cleared between launches (seen on an H200: a counter in it survives hundreds
// of calls), so a call could leave something there to the next.
class CudaScrub {
 public:
  // Loads its kernel at once: later the process may be locked in. The context must be current.
  explicit CudaScrub(const cuda::SharedContext& context);

  // On every multiprocessor.
  void enqueue(cuda::Stream stream);

 private:
  cuda::UniqueModule module_;
  cuda::Function kernel_ = nullptr;
  unsigned groups_ = 0;
  unsigned shared_bytes_ = 0;
};

}  // namespace kernel_foundry
