#include "launch_sequence.hpp"

#include <stdexcept>

#include "host_memory.hpp"

namespace kernel_foundry {

void LaunchSequence::bind(std::size_t set, std::vector<std::uintptr_t> addresses) {
  if (set > sets_.size()) throw std::invalid_argument("sets are bound in order, without gaps");
  if (set == sets_.size()) sets_.emplace_back();
  sets_[set] = std::move(addresses);
}

const std::vector<std::uintptr_t>& LaunchSequence::addresses(std::size_t set) const {
  if (set >= sets_.size()) throw std::invalid_argument("no such set is bound");
  return sets_[set];
}

void LaunchSequence::run(std::size_t set) {
  const std::vector<std::uintptr_t>& bound = addresses(set);
  for (const auto& step : steps_) {
    if (const auto* launch = std::get_if<Launch>(&step)) {
      device_->enqueue(*launch, bound);
    } else {
      const Region& region = std::get<Region>(step);
      device_->clear(bound.at(region.buffer), region.size_bytes);
    }
  }
  device_->wait();
}

SequenceTrial::SequenceTrial(LaunchSequence& sequence, std::vector<Region> outputs,
                             std::vector<std::vector<std::uintptr_t>> keep_into,
                             std::size_t flush_bytes)
    : sequence_(sequence), outputs_(std::move(outputs)), keep_into_(std::move(keep_into)),
      flush_bytes_(flush_bytes) {
  for (const auto& slot : keep_into_) {
    if (slot.size() != outputs_.size()) {
      throw std::invalid_argument("each keep slot needs one address for each output");
    }
  }
}

void SequenceTrial::poison(std::size_t set) {
  const auto& bound = sequence_.addresses(set);
  for (const Region& output : outputs_) {
    sequence_.device().fill(bound.at(output.buffer), output.size_bytes, poison_byte);
  }
}

void SequenceTrial::flush() {
  if (flush_bytes_ > 0) sequence_.device().flush(flush_bytes_);
}

void SequenceTrial::run(std::size_t set) { sequence_.run(set); }

double SequenceTrial::device_ns() const { return sequence_.device().span_ns(); }

void SequenceTrial::keep(std::size_t slot, std::size_t set) {
  const auto& bound = sequence_.addresses(set);
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    sequence_.device().copy(keep_into_.at(slot)[i], bound.at(outputs_[i].buffer),
                            outputs_[i].size_bytes);
  }
}

}  // namespace kernel_foundry
