// Holds a CUDA stream back, so that work is complete in the queue before any of it starts.
#pragma once

#include <cstdint>

#include "cuda_context.hpp"

namespace kernel_foundry {

// The stream waits for a number in host memory. Where the driver cannot do that, `hold` says so.
class CudaHold {
 public:
  explicit CudaHold(const cuda::SharedContext& context);  // throws DriverError
  ~CudaHold() { release(); }  // a stream that waits for ever cannot be destroyed
  CudaHold(const CudaHold&) = delete;
  CudaHold& operator=(const CudaHold&) = delete;

  [[nodiscard]] bool hold(cuda::Stream stream);
  void release() noexcept;

 private:
  cuda::UniqueHostMemory memory_;
  cuda::Address address_ = 0;  // of the same memory, for the device
  std::uint32_t turn_ = 0;
};

}  // namespace kernel_foundry
