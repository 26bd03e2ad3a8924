// The inputs of the sets that are measured, given new values before each call and their own again
// after the last.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "device.hpp"
#include "redraw_tensor.hpp"

namespace kernel_foundry {

// What is redrawn, and where it lies: `addresses[set][i]` is that of tensor i. Sets may share
// tensors, but no two may overlap in part.
struct RedrawPlan {
  std::uint64_t key = 0;
  std::vector<RedrawnTensor> tensors;
  std::vector<std::vector<std::uintptr_t>> addresses;
};

class InputRedraw {
 public:
  // Throws std::invalid_argument where a set has not one address for each tensor.
  InputRedraw(Device& device, RedrawPlan plan);

  [[nodiscard]] bool is_empty() const noexcept { return plan_.tensors.empty(); }
  // Gives the tensors of a set whose numbers are among `numbers` (if `among`, else those that are
  // not) the values of call `index`, 1 or more; to be waited for.
  void apply(std::size_t set, std::uint32_t index, const std::vector<std::uint32_t>& numbers = {},
             bool among = false);
  // Gives all tensors the values that they had at first; to be waited for.
  void restore();

 private:
  void bring(std::uintptr_t address, const RedrawnTensor& tensor, std::uint32_t index);

  Device& device_;
  RedrawPlan plan_;
  std::unordered_map<std::uintptr_t, std::uint32_t> index_at_;  // by address; absent: 0
};

}  // namespace kernel_foundry
