// The change of a tensor from one call's values to another's, in place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "redraw.hpp"

namespace kernel_foundry {

// A tensor that is redrawn: how its values change, not where they lie.
struct RedrawnTensor {
  std::string dtype;  // as torch calls it: of floats values change, of others places
  std::size_t size_bytes;
  std::uint32_t number;  // among the tensors of a set
};

// The pass that brings `tensor` from one index to another. Throws std::invalid_argument where
// nothing is known of the type.
[[nodiscard]] RedrawPass redraw_pass(const RedrawnTensor& tensor, std::uint64_t key,
                                     std::uint32_t undo_index, std::uint32_t apply_index);

// The passes over memory that a change of places takes, one after the other: one call's pairs are
// not another's. Each has `apply_index` alone.
[[nodiscard]] std::vector<RedrawPass> order_passes(const RedrawPass& pass);

// Makes a pass over host memory, on every core that this process may use.
void redraw_on_host(std::uintptr_t address, const RedrawPass& pass);

}  // namespace kernel_foundry
