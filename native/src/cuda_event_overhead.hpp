// The time that a pair of events adds to the span between them.
#pragma once

#include <cstddef>
#include <optional>

#include "cuda_context.hpp"
#include "device.hpp"

namespace kernel_foundry {

// It is measured once in each process, with a kernel that does nothing. On an H200 it is 1.1 to
// 1.35 µs. It differs by 0.2 µs from process to process, and the times of short kernels differ with
// it (correlation 0.9 and more).
class CudaEventOverhead {
 public:
  // Loads its kernel at once, since the process may be locked in later. The context must be
  // current.
  explicit CudaEventOverhead(const cuda::SharedContext& context);

  // `device` must be the caller's own, with an empty queue. Its caches are emptied.
  [[nodiscard]] double nanoseconds(Device& device);

 private:
  cuda::UniqueModule module_;
  cuda::Function kernel_ = nullptr;
  std::optional<double> measured_ns_;
};

}  // namespace kernel_foundry
