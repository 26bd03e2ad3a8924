// The change of a tensor from one call's values to another's, in place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "redraw.hpp"

namespace kernel_foundry {

// A tensor that is redrawn: how its values change, not where they lie.
struct RedrawnTensor {
  std::string dtype;  // as torch calls it, of floating point
  std::size_t size_bytes;
  std::uint32_t number;  // among the tensors of a set
};

// The pass that brings `tensor` from one index to another. Throws std::invalid_argument where the
// type is none of floating point.
[[nodiscard]] RedrawPass redraw_pass(const RedrawnTensor& tensor, std::uint64_t key,
                                     std::uint32_t undo_index, std::uint32_t apply_index);

// Makes a pass over host memory, on every core that this process may use.
void redraw_on_host(std::uintptr_t address, const RedrawPass& pass);

}  // namespace kernel_foundry
