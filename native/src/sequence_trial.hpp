// Measures a launch sequence: outputs are poisoned before each call, some are kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "launch_sequence.hpp"
#include "measure.hpp"

namespace kernel_foundry {

class SequenceTrial final : public Trial {
 public:
  // `keep_into[slot]` holds one address for each output region. Sequences of several steps are
  // captured, so that the time between them is the device's own.
  SequenceTrial(LaunchSequence& sequence, std::vector<Region> outputs,
                std::vector<std::vector<std::uintptr_t>> keep_into, std::size_t flush_bytes);

  void poison(std::size_t set) override;
  void flush() override;
  [[nodiscard]] CallTime call(std::size_t set) override;
  void keep(std::size_t slot, std::size_t set) override;
  [[nodiscard]] bool times_by_events() const noexcept override;
  [[nodiscard]] Clocks* clocks() noexcept override;

 private:
  LaunchSequence& sequence_;
  std::vector<Region> outputs_;
  std::vector<std::vector<std::uintptr_t>> keep_into_;
  std::size_t flush_bytes_;
};

}  // namespace kernel_foundry
