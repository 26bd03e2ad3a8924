// Measures a launch sequence: before each call its inputs are redrawn, what is prepared of them is
// made again, and whatever a call could write is overwritten; some outputs are kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "input_redraw.hpp"
#include "launch_sequence.hpp"
#include "measure.hpp"

namespace kernel_foundry {

// What is made of a set's inputs before a call, timed for itself, by a sequence with the same sets.
struct Preparation {
  LaunchSequence* sequence = nullptr;  // null: nothing is
  std::vector<Region> made;
  std::vector<std::uint32_t> weights;                    // numbers of the tensors that it may read
  std::vector<std::vector<std::uintptr_t>> sealed_into;  // where a copy of it goes, by set
};

// Everything about a trial but its sequence.
struct TrialPlan {
  std::vector<Region> outputs;
  std::vector<Region> scratch;
  std::vector<std::vector<std::uintptr_t>> keep_into;  // by slot, one address for each output
  std::size_t flush_bytes = 0;
  std::uint64_t scratch_seed = 0;
  RedrawPlan redraw;
  Preparation preparation;
  std::vector<ByteRange> guards;  // what no call may write: it gets its own bytes again
};

class SequenceTrial final : public Trial {
 public:
  // Sequences of several steps are captured, so that the time between them is the device's own.
  // Scratch is filled with another byte each time, drawn from `scratch_seed`: a kernel that uses
  // scratch writes about as much, so this at most doubles what a call takes.
  SequenceTrial(LaunchSequence& sequence, TrialPlan plan);

  void redraw(std::size_t set, std::uint32_t index) override;
  [[nodiscard]] std::optional<double> prepare_ns() const noexcept override { return prepare_ns_; }
  // What was prepared stays that of the last call.
  void restore() override;
  void poison(std::size_t set) override;
  void flush() override;
  [[nodiscard]] CallTime call(std::size_t set) override;
  void keep(std::size_t slot, std::size_t set) override;
  [[nodiscard]] bool times_by_events() const noexcept override;
  [[nodiscard]] Clocks* clocks() noexcept override;

 private:
  void add_outputs(std::size_t set, std::vector<ByteRange>& to) const;
  void add_spoilt(const std::vector<Region>& regions, std::size_t set, std::vector<ByteRange>& to);
  void prepare(std::size_t set);
  void seal(std::size_t set);  // keep a copy of what was prepared

  LaunchSequence& sequence_;
  TrialPlan plan_;
  InputRedraw inputs_;
  std::mt19937_64 scratch_bytes_;
  std::optional<double> prepare_ns_;
};

}  // namespace kernel_foundry
