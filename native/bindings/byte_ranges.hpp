// Ranges of bytes as Python gives them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <vector>

#include "device.hpp"

namespace kernel_foundry {

using RangeRows = std::vector<std::tuple<std::uintptr_t, std::size_t, unsigned char>>;

[[nodiscard]] inline std::vector<ByteRange> ranges_of(const RangeRows& rows) {
  std::vector<ByteRange> ranges;
  ranges.reserve(rows.size());
  for (const auto& [address, size_bytes, byte] : rows)
    ranges.push_back({address, size_bytes, byte});
  return ranges;
}

}  // namespace kernel_foundry
