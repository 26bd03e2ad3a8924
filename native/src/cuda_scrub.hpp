// Overwrites what a kernel would find in shared and local memory, and in registers that it never
// wrote, from the launches before it.
#pragma once

#include <cstddef>
#include <vector>

#include "cuda_context.hpp"

namespace kernel_foundry {

// Shared memory is not cleared between launches (seen on an H200: a counter in it survives hundreds
// of calls), nor is the memory behind what a work-item spills, so a call could leave something
// there to the next. A register that a kernel reads without having written it holds what the last
// work-item left there.
class CudaScrub {
 public:
  // Loads its kernel at once: later the process may be locked in. The context must be current.
  explicit CudaScrub(const cuda::SharedContext& context);

  // From here on, as much of every work-item's local memory is overwritten, too. Throws LoadError
  // where it is more than can be.
  void cover_local(std::size_t bytes);

  // On every multiprocessor.
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
