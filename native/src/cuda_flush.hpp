// Displaces everything from the caches of a CUDA device.
#pragma once

#include <cstddef>

#include "cuda_context.hpp"

namespace kernel_foundry {

// By reading. Lines that were written instead would be written back while the next call is timed:
// on an H200 that shows as 3 µs more.
class CudaFlush {
 public:
  // Loads its kernel at once: later the process may be locked in. The context must be current.
  explicit CudaFlush(const cuda::SharedContext& context);

  // Reads at least `size_bytes` of a buffer of its own.
  void enqueue(std::size_t size_bytes, cuda::Stream stream);
  // Throws LaunchError where a flush that is over found the buffer written: it is a candidate's
  // way to keep something for its next call.
  void check_unwritten() const;

 private:
  cuda::SharedContext context_;
  cuda::UniqueModule module_;
  cuda::Function kernel_ = nullptr;
  unsigned groups_ = 0;
  cuda::UniqueMemory buffer_;
  std::size_t buffer_bytes_ = 0;
  cuda::UniqueHostMemory written_;  // a word that the device writes to as well
  cuda::Address written_address_ = 0;
};

}  // namespace kernel_foundry
