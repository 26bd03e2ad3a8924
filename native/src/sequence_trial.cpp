#include "sequence_trial.hpp"

#include <stdexcept>
#include <utility>

#include "host_memory.hpp"
#include "timed_call.hpp"

namespace kernel_foundry {

SequenceTrial::SequenceTrial(LaunchSequence& sequence, std::vector<Region> outputs,
                             std::vector<Region> scratch,
                             std::vector<std::vector<std::uintptr_t>> keep_into,
                             std::size_t flush_bytes, std::uint64_t scratch_seed)
    : sequence_(sequence), outputs_(std::move(outputs)), scratch_(std::move(scratch)),
      keep_into_(std::move(keep_into)), flush_bytes_(flush_bytes), scratch_bytes_(scratch_seed) {
  for (const auto& slot : keep_into_) {
    if (slot.size() != outputs_.size()) {
      throw std::invalid_argument("each keep slot needs one address for each output");
    }
  }
  if (!sequence_.device().times_by_events()) return;
  sequence_.prepare();
  if (sequence_.step_count() < 2) return;
  for (std::size_t set = 0; set < sequence_.set_count(); ++set) sequence_.capture(set);
}

void SequenceTrial::poison(std::size_t set) {
  const auto& bound = sequence_.addresses(set);
  for (const Region& output : outputs_) {
    sequence_.device().fill(bound.at(output.buffer), output.size_bytes, poison_byte);
  }
  const auto byte = static_cast<unsigned char>(scratch_bytes_() >> 56);
  for (const Region& region : scratch_) {
    sequence_.device().fill(bound.at(region.buffer), region.size_bytes, byte);
  }
}

void SequenceTrial::flush() {
  if (flush_bytes_ == 0) return;
  // First: it takes the multiprocessors' memory for itself, and reading gives it back.
  sequence_.device().scrub();
  sequence_.device().flush(flush_bytes_);
  sequence_.device().reset_persisting_cache();
}

CallTime SequenceTrial::call(std::size_t set) {
  return timed_call(sequence_.device(), sequence_.may_be_held(set),
                    [&] { sequence_.enqueue(set); });
}

void SequenceTrial::keep(std::size_t slot, std::size_t) {
  // A call may have returned the output it made.
  const auto& bound = sequence_.last_addresses();
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    sequence_.device().copy(keep_into_.at(slot)[i], bound.at(outputs_[i].buffer),
                            outputs_[i].size_bytes);
  }
}

bool SequenceTrial::times_by_events() const noexcept {
  return sequence_.device().times_by_events();
}

Clocks* SequenceTrial::clocks() noexcept { return sequence_.device().clocks(); }

}  // namespace kernel_foundry
