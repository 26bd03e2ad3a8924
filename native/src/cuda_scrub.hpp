// Overwrites what earlier launches left in shared memory, local memory and registers, where the
// next kernel could read it.
#pragma once

#include <cstddef>
#include <vector>

#include "cuda_context.hpp"

namespace kernel_foundry {

// The hardware clears neither shared memory (seen on an H200: a counter in it survives hundreds of
// calls) nor the memory of spills between launches, so a call could leave something there for the
// next. A register that a kernel reads before writing it holds what the last work-item left there.
class CudaScrub {
 public:
  // Loads its kernel at once, since the process may be locked in later. The context must be
  // current.
  explicit CudaScrub(const cuda::SharedContext& context);

  // From now on also overwrites so many bytes of every work-item's local memory. Throws LoadError
  // if no work-item can have so many.
  void cover_local(std::size_t bytes);

  // Enqueues the scrub for every multiprocessor.
  void enqueue(cuda::Stream stream);

 private:
  cuda::UniqueModule module_;
  cuda::Function kernel_ = nullptr;
  std::vector<cuda::Function> local_kernels_;  // each twice the size of the one before
  unsigned local_count_ = 0;                   // the last of so many is used; 0: none
  unsigned groups_ = 0;
  unsigned local_groups_ = 0;
  unsigned shared_bytes_ = 0;
};

}  // namespace kernel_foundry
