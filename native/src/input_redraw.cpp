#include "input_redraw.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace kernel_foundry {

InputRedraw::InputRedraw(Device& device, RedrawPlan plan)
    : device_(device), plan_(std::move(plan)) {
  for (const auto& of_set : plan_.addresses) {
    if (of_set.size() != plan_.tensors.size()) {
      throw std::invalid_argument("each set needs one address for each tensor that is redrawn");
    }
  }
}

void InputRedraw::bring(std::uintptr_t address, const RedrawnTensor& tensor, std::uint32_t index) {
  std::uint32_t& present = index_at_[address];
  if (present == index) return;
  device_.redraw(address, redraw_pass(tensor, plan_.key, present, index));
  present = index;
}

void InputRedraw::apply(std::size_t set, std::uint32_t index,
                        const std::vector<std::uint32_t>& numbers, bool among) {
  if (is_empty()) return;
  const auto& addresses = plan_.addresses.at(set);
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    const bool is_among = std::ranges::find(numbers, plan_.tensors[i].number) != numbers.end();
    if (is_among == among) bring(addresses[i], plan_.tensors[i], index);
  }
}

void InputRedraw::restore() {
  for (const auto& addresses : plan_.addresses) {
    for (std::size_t i = 0; i < addresses.size(); ++i) bring(addresses[i], plan_.tensors[i], 0);
  }
}

}  // namespace kernel_foundry
