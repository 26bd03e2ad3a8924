#include "launch_sequence.hpp"

#include <algorithm>
#include <stdexcept>

#include "timed_call.hpp"

namespace kernel_foundry {
namespace {

// A held queue takes about a thousand entries; past that, enqueuing would wait for ever.
constexpr std::size_t most_held_steps = 256;

// Runs up to this length are tried once more in `prepare`. In a longer run the time that the host
// takes at its beginning does not show, and another run would cost too much.
constexpr double longest_short_run_ns = 5e6;

// The first run also loads the kernels.
constexpr std::size_t runs_that_tell = 2;

// Flushes of this many caches take longer than a library takes to enqueue its work.
constexpr std::size_t caches_of_a_delay = 4;

}  // namespace

void LaunchSequence::append(Step step) {
  steps_.push_back(std::move(step));
  for (auto& graph : graphs_) graph.reset();
  run_count_ = 0;
  shortest_run_ns_ = std::numeric_limits<double>::infinity();
}

void LaunchSequence::call(HostCall call) {
  append(std::move(call));
  has_calls_ = true;
}

void LaunchSequence::bind(std::size_t set, std::vector<std::uintptr_t> addresses) {
  if (set > sets_.size()) throw std::invalid_argument("sets are bound in order, without gaps");
  if (set == sets_.size()) {
    sets_.emplace_back();
    graphs_.emplace_back();
  }
  sets_[set] = std::move(addresses);
  graphs_[set].reset();
}

const std::vector<std::uintptr_t>& LaunchSequence::addresses(std::size_t set) const {
  if (set >= sets_.size()) throw std::invalid_argument("no such set is bound");
  return sets_[set];
}

void LaunchSequence::enqueue_step(const Step& step, std::size_t set) {
  if (const auto* launch = std::get_if<Launch>(&step)) {
    device_->enqueue(*launch, last_);
  } else if (const auto* region = std::get_if<Region>(&step)) {
    device_->clear(last_.at(region->buffer), region->size_bytes);
  } else {
    const auto& call = std::get<HostCall>(step);
    // A library on the host knows nothing of the device's queue; one on a GPU uses the same stream.
    if (device_->is_host_memory()) device_->wait();
    const std::uintptr_t result = call.function(set);
    if (call.result) last_.at(*call.result) = result;
  }
}

void LaunchSequence::enqueue(std::size_t set) {
  last_ = addresses(set);
  if (graphs_[set]) {
    graphs_[set]->launch();
    return;
  }
  for (const Step& step : steps_) enqueue_step(step, set);
}

void LaunchSequence::run(std::size_t set) {
  const SteadyClock::time_point start = SteadyClock::now();
  enqueue(set);
  device_->wait();
  shortest_run_ns_ = std::min(shortest_run_ns_, since_ns(start));
  ++run_count_;
}

bool LaunchSequence::is_short() const noexcept { return shortest_run_ns_ < longest_short_run_ns; }

void LaunchSequence::prepare() {
  while (run_count_ < runs_that_tell && !is_short()) run(0);
}

std::vector<double> LaunchSequence::profile(std::size_t set, std::size_t flush_bytes) {
  run(set);  // drivers load a kernel at its first launch
  if (flush_bytes > 0) device_->flush(flush_bytes);
  last_ = addresses(set);
  std::vector<double> times_ns;
  times_ns.reserve(steps_.size());
  for (const Step& step : steps_) {
    const bool is_call = std::holds_alternative<HostCall>(step);
    if (is_call && device_->times_by_events()) {
      device_->flush(caches_of_a_delay * device_->facts().cache_bytes);
    }
    times_ns.push_back(timed_call(*device_, !is_call, [&] { enqueue_step(step, set); }).figure_ns);
  }
  return times_ns;
}

void LaunchSequence::capture(std::size_t set) {
  static_cast<void>(addresses(set));  // throws when there is no such set
  if (has_calls_ || graphs_[set] || !device_->times_by_events()) return;
  prepare();  // drivers load a kernel at its first launch, which is not recorded
  last_ = addresses(set);
  graphs_[set] = device_->capture([&] {
    for (const Step& step : steps_) enqueue_step(step, set);
  });
  // The first launch uploads the graph to the device, and must not be held.
  if (graphs_[set] && is_short()) run(set);
}

bool LaunchSequence::may_be_held(std::size_t set) const {
  return is_short() && !has_calls_ && (graphs_.at(set) || steps_.size() <= most_held_steps);
}

}  // namespace kernel_foundry
