#include "sequence_trial.hpp"

#include <sys/random.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "error.hpp"
#include "host_memory.hpp"
#include "timed_call.hpp"

namespace kernel_foundry {
namespace {

// Warms up, and captures multi-step sequences as graphs, one for each set.
void get_ready(LaunchSequence& sequence) {
  sequence.prepare();
  if (sequence.step_count() < 2) return;
  for (std::size_t set = 0; set < sequence.set_count(); ++set) sequence.capture(set);
}

// From the system: a generator's state would tell kernels on the CPU what comes.
unsigned char some_byte() {
  unsigned char byte = 0;
  if (getrandom(&byte, 1, 0) != 1) throw DriverError("getrandom gives no byte");
  return byte;
}

}  // namespace

SequenceTrial::SequenceTrial(LaunchSequence& sequence, TrialPlan plan)
    : sequence_(sequence), plan_(std::move(plan)),
      inputs_(sequence.device(), std::move(plan_.redraw)) {
  for (const auto& slots : {plan_.keep_into, plan_.guests.keep_into}) {
    for (const auto& slot : slots) {
      if (slot.size() != plan_.outputs.size()) {
        throw std::invalid_argument("each keep slot needs one address for each output");
      }
    }
  }
  if (!sequence_.device().times_by_events()) return;
  if (plan_.preparation.sequence != nullptr) {
    hide();
    sequence_.device().scrub();
    get_ready(*plan_.preparation.sequence);
    show();
    // It may have made it anew, and sums by atomics differ in their last bits.
    for (std::size_t set = 0; set < sequence_.set_count(); ++set) seal(set);
  }
  get_ready(sequence_);
}

void SequenceTrial::redraw(std::size_t set, std::uint32_t index) {
  const bool is_prepared = plan_.preparation.sequence != nullptr;
  const auto& weights = plan_.preparation.weights;
  inputs_.apply(set, index, weights, true);
  // Whatever addresses `prepare` finds, the inputs of this call are not there yet.
  if (is_prepared) prepare(set);
  inputs_.apply(set, index, weights, false);
  if (inputs_.is_empty() && !is_prepared) return;
  sequence_.device().wait();  // else the host's span of a call would begin with this
}

void SequenceTrial::restore() {
  show();  // `prepare` may have failed while they were hidden
  inputs_.restore();
  sequence_.device().wait();
}

// Nothing of an earlier call is left where `prepare` could find it. Only the timed run produces the
// weights used.
void SequenceTrial::prepare(std::size_t set) {
  const Preparation& preparation = plan_.preparation;
  Device& device = sequence_.device();
  std::vector<ByteRange> ranges = plan_.guards;
  add_scrubbed(plan_.scratch, set, ranges);
  add_scrubbed(preparation.made, set, ranges);
  add_library_memory(ranges);
  device.fill_all(ranges);
  hide();
  // After `hide`, which reads the inputs. Not before warm samples of a CPU, which have to account
  // for the time that passes.
  if (plan_.flush_bytes > 0 || !device.is_host_memory()) device.scrub();
  if (!device.times_by_events()) {
    device.wait();
  } else if (plan_.flush_bytes > 0) {
    device.flush(plan_.flush_bytes);  // while it lasts, the host submits
  }
  const auto enqueue = [&] { preparation.sequence->enqueue(set); };
  prepare_ns_ = timed_call(device, preparation.sequence->may_be_held(set), enqueue).figure_ns;
  show();
  seal(set);
}

void SequenceTrial::hide() {
  if (plan_.preparation.cover != nullptr) plan_.preparation.cover->hide();
}

void SequenceTrial::show() {
  if (plan_.preparation.cover != nullptr) plan_.preparation.cover->show();
}

void SequenceTrial::seal(std::size_t set) {
  const Preparation& preparation = plan_.preparation;
  const auto& bound = sequence_.addresses(set);
  for (std::size_t i = 0; i < preparation.made.size(); ++i) {
    const Region& region = preparation.made[i];
    sequence_.device().copy(preparation.sealed_into.at(set).at(i), bound.at(region.buffer),
                            region.size_bytes);
  }
}

void SequenceTrial::poison(std::size_t set) {
  std::vector<ByteRange> ranges = plan_.guards;
  if (sequence_.device().is_host_memory()) {
    add_outputs(set, ranges);  // where other sets lie no kernel can know
  } else {
    for (std::size_t each = 0; each < sequence_.set_count(); ++each) add_outputs(each, ranges);
  }
  add_scrubbed(plan_.scratch, set, ranges);
  add_library_memory(ranges);
  sequence_.device().fill_all(ranges);
}

void SequenceTrial::add_outputs(std::size_t set, std::vector<ByteRange>& to) const {
  const auto& bound = sequence_.addresses(set);
  for (const Region& output : plan_.outputs) {
    to.push_back({bound.at(output.buffer), output.size_bytes, poison_byte});
  }
}

void SequenceTrial::add_scrubbed(const std::vector<Region>& regions, std::size_t set,
                                 std::vector<ByteRange>& to) {
  const unsigned char byte = some_byte();
  for (const Region& region : regions) {
    to.push_back({sequence_.addresses(set).at(region.buffer), region.size_bytes, byte});
  }
}

void SequenceTrial::add_library_memory(std::vector<ByteRange>& to) {
  if (!plan_.library_memory) return;
  const unsigned char byte = some_byte();
  for (const auto& [address, size_bytes] : plan_.library_memory()) {
    to.push_back({address, size_bytes, byte});
  }
}

void SequenceTrial::flush() {
  if (plan_.flush_bytes == 0) return;
  // First: it takes the multiprocessors' memory for itself, and reading gives it back.
  sequence_.device().scrub();
  sequence_.device().flush(plan_.flush_bytes);
  sequence_.device().reset_persisting_cache();
}

CallTime SequenceTrial::call(std::size_t set) {
  return timed_call(sequence_.device(), sequence_.may_be_held(set),
                    [&] { sequence_.enqueue(set); });
}

void SequenceTrial::keep(std::size_t slot, std::size_t) { save_outputs(plan_.keep_into.at(slot)); }

void SequenceTrial::save_outputs(const std::vector<std::uintptr_t>& into) {
  // A call may have returned the output it made.
  const auto& bound = sequence_.last_addresses();
  for (std::size_t i = 0; i < plan_.outputs.size(); ++i) {
    sequence_.device().copy(into[i], bound.at(plan_.outputs[i].buffer),
                            plan_.outputs[i].size_bytes);
  }
}

void SequenceTrial::lend(std::size_t set, std::size_t guest) {
  lend(set, guest, true);
  if (plan_.preparation.sequence != nullptr) prepare(set);
  lend(set, guest, false);
  sequence_.device().wait();
}

void SequenceTrial::lend(std::size_t set, std::size_t guest, bool weights) {
  const GuestInputs& guests = plan_.guests;
  for (std::size_t i = 0; i < guests.tensors.size(); ++i) {
    const auto& [number, size_bytes] = guests.tensors[i];
    const auto& among = plan_.preparation.weights;
    if ((std::ranges::find(among, number) != among.end()) != weights) continue;
    const std::uintptr_t at = guests.addresses.at(set).at(i);
    sequence_.device().copy(guests.aside.at(i), at, size_bytes);
    sequence_.device().copy(at, guests.from.at(guest).at(i), size_bytes);
  }
}

void SequenceTrial::take_back(std::size_t set, std::size_t guest) {
  const GuestInputs& guests = plan_.guests;
  save_outputs(guests.keep_into.at(guest));
  for (std::size_t i = 0; i < guests.tensors.size(); ++i) {
    sequence_.device().copy(guests.addresses.at(set).at(i), guests.aside.at(i),
                            guests.tensors[i].size_bytes);
  }
}

bool SequenceTrial::times_by_events() const noexcept {
  return sequence_.device().times_by_events();
}

Clocks* SequenceTrial::clocks() noexcept { return sequence_.device().clocks(); }

}  // namespace kernel_foundry
