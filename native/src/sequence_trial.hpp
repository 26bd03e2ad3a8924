// Measures a launch sequence: before each call its inputs are redrawn, what is prepared of them is
// made again, and whatever a call could write is overwritten; some outputs are kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "input_redraw.hpp"
#include "launch_sequence.hpp"
#include "measure.hpp"

namespace kernel_foundry {

// `prepare`: a sequence with the same sets that runs before a call and is timed by itself.
struct Preparation {
  LaunchSequence* sequence = nullptr;  // null: the plan prepares nothing
  std::vector<Region> made;
  std::vector<std::uint32_t> weights;                    // numbers of the tensors that it may read
  std::vector<std::vector<std::uintptr_t>> sealed_into;  // where a copy of `made` goes, by set
  Cover* cover = nullptr;  // hides inputs and outputs of all calls from it
};

// (address, size_bytes) of each stretch.
using Stretches = std::vector<std::pair<std::uintptr_t, std::size_t>>;

// Inputs of calls that are made among the timed ones. All inputs of a set: tensors by their
// numbers.
struct GuestInputs {
  struct Tensor {
    std::uint32_t number;
    std::size_t size_bytes;
  };
  std::vector<Tensor> tensors;
  std::vector<std::vector<std::uintptr_t>> addresses;  // where each lies, by set…
  std::vector<std::vector<std::uintptr_t>> from;       // …and by guest
  std::vector<std::uintptr_t> aside;                   // where a set's own are kept until then
  std::vector<std::vector<std::uintptr_t>> keep_into;  // by guest, one address for each output
};

// Buffers and options of a SequenceTrial.
struct TrialPlan {
  std::vector<Region> outputs;
  std::vector<Region> scratch;
  std::vector<std::vector<std::uintptr_t>> keep_into;  // by slot, one address for each output
  std::size_t flush_bytes = 0;
  RedrawPlan redraw;
  Preparation preparation;
  std::vector<ByteRange> guards;  // what no call may write; rewritten before each call
  // Returns what libraries have allocated by now. Overwritten before each call, so that nothing of
  // an earlier call is left there. Empty: there are no libraries.
  std::function<Stretches()> library_memory;
  GuestInputs guests;
};

class SequenceTrial final : public Trial {
 public:
  // Sequences of several steps are captured, so that the time between them is the device's own.
  // Scratch is filled with some byte each time: a kernel that uses scratch writes about as much, so
  // this at most doubles what a call takes.
  SequenceTrial(LaunchSequence& sequence, TrialPlan plan);

  void redraw(std::size_t set, std::uint32_t index) override;
  [[nodiscard]] std::optional<double> prepare_ns() const noexcept override { return prepare_ns_; }
  // What `prepare` made stays that of the last call.
  void restore() override;
  void poison(std::size_t set) override;
  void flush() override;
  [[nodiscard]] CallTime call(std::size_t set) override;
  void keep(std::size_t slot, std::size_t set) override;
  [[nodiscard]] std::size_t guest_count() const noexcept override {
    return plan_.guests.from.size();
  }
  void lend(std::size_t set, std::size_t guest) override;
  void take_back(std::size_t set, std::size_t guest) override;
  [[nodiscard]] bool times_by_events() const noexcept override;
  [[nodiscard]] Clocks* clocks() noexcept override;

 private:
  void add_outputs(std::size_t set, std::vector<ByteRange>& to) const;
  void add_scrubbed(const std::vector<Region>& regions, std::size_t set,
                    std::vector<ByteRange>& to);
  void add_library_memory(std::vector<ByteRange>& to);
  void prepare(std::size_t set);
  void hide();
  void show();
  void seal(std::size_t set);  // keep a copy of what was prepared
  // Copies a guest's weights, or all its other inputs, into a set whose own go aside.
  void lend(std::size_t set, std::size_t guest, bool weights);
  void save_outputs(const std::vector<std::uintptr_t>& into);

  LaunchSequence& sequence_;
  TrialPlan plan_;
  InputRedraw inputs_;
  std::optional<double> prepare_ns_;
};

}  // namespace kernel_foundry
