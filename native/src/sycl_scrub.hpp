// Overwrites what a work-group would find in local memory from the launches before it.
#pragma once

#include <optional>
#include <string>
#include <sycl/sycl.hpp>

namespace kernel_foundry {

// The CPU runtime has a buffer for each of its threads and clears none: what one launch leaves
// there the next one finds.
class SyclScrub {
 public:
  // Whether SPIR-V has anything in local memory.
  [[nodiscard]] static bool is_needed_by(const std::string& code);

  explicit SyclScrub(sycl::queue& queue);  // builds its kernel: 70 ms

  // Groups enough that every thread should get one.
  void enqueue(sycl::queue& queue);

 private:
  std::optional<sycl::kernel> kernel_;
  std::size_t groups_;
  std::size_t words_;  // all that a group can have
};

}  // namespace kernel_foundry
