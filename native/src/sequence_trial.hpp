// Measures a launch sequence: outputs and scratch are poisoned before each call, some outputs are
// kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "launch_sequence.hpp"
#include "measure.hpp"

namespace kernel_foundry {

class SequenceTrial final : public Trial {
 public:
  // `keep_into[slot]` holds one address for each output region. Sequences of several steps are
  // captured, so that the time between them is the device's own. Scratch is filled with another
  // byte each time, drawn from `scratch_seed`: a kernel that uses scratch writes about as much, so
  // this at most doubles what a call takes.
  SequenceTrial(LaunchSequence& sequence, std::vector<Region> outputs, std::vector<Region> scratch,
                std::vector<std::vector<std::uintptr_t>> keep_into, std::size_t flush_bytes,
                std::uint64_t scratch_seed);

  void poison(std::size_t set) override;
  void flush() override;
  [[nodiscard]] CallTime call(std::size_t set) override;
  void keep(std::size_t slot, std::size_t set) override;
  [[nodiscard]] bool times_by_events() const noexcept override;
  [[nodiscard]] Clocks* clocks() noexcept override;

 private:
  LaunchSequence& sequence_;
  std::vector<Region> outputs_;
  std::vector<Region> scratch_;
  std::vector<std::vector<std::uintptr_t>> keep_into_;
  std::size_t flush_bytes_;
  std::mt19937_64 scratch_bytes_;
};

}  // namespace kernel_foundry
