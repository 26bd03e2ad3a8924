// The measuring loop: the same for candidates and baselines, on every device kind.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "call_draws.hpp"
#include "clocks.hpp"
#include "stopping.hpp"

namespace kernel_foundry {

// Primary and secondary duration of one call.
struct CallTime {
  double figure_ns = 0;                                         // the one that counts
  double beside_ns = std::numeric_limits<double>::quiet_NaN();  // NaN: no second clock
};

// Something to measure. A set is one copy of inputs and outputs at its own addresses.
class Trial {
 public:
  virtual ~Trial() = default;
  // Gives the set inputs that no earlier call had, and prepares it again. `index` counts all calls,
  // from 1.
  virtual void redraw(std::size_t set, std::uint32_t index) = 0;
  // Duration of the last `prepare`.
  [[nodiscard]] virtual std::optional<double> prepare_ns() const noexcept { return std::nullopt; }
  // Gives all sets their first inputs again.
  virtual void restore() = 0;
  // Poisons the outputs, all of which must be written, and overwrites scratch, so that no call
  // finds data of an earlier one.
  virtual void poison(std::size_t set) = 0;
  virtual void flush() = 0;  // scrub on-chip memory and dead stacks, then flush caches
  // Makes one call, which is complete on return.
  [[nodiscard]] virtual CallTime call(std::size_t set) = 0;
  virtual void keep(std::size_t slot, std::size_t set) = 0;  // save the outputs of the last call
  // Inputs beside those of the sets, for calls that are made among the timed ones.
  [[nodiscard]] virtual std::size_t guest_count() const noexcept { return 0; }
  // Swaps in a guest's inputs and prepares the set again.
  virtual void lend(std::size_t set, std::size_t guest) { (void)set, (void)guest; }
  // Saves the outputs of the last call, then restores the set's own inputs.
  virtual void take_back(std::size_t set, std::size_t guest) { (void)set, (void)guest; }
  // Whether the figure is a span of device events, and the other clock the host's.
  [[nodiscard]] virtual bool times_by_events() const noexcept { return false; }
  [[nodiscard]] virtual Clocks* clocks() noexcept { return nullptr; }
};

struct MeasureOptions {
  std::size_t warmup_calls = 3;
  std::size_t set_count = 1;
  std::size_t keep_count = 0;
  bool is_cold = true;
  int draws = -1;  // descriptor of a file of `CallDraw`; negative: the system draws
  MedianCriterion::Options stopping;
};

// Samples between two readings of the device's clocks, in the order of `samples_ns`.
struct ClockBlock {
  std::size_t sample_count = 0;
  unsigned compute_mhz_before = 0;
  unsigned compute_mhz_after = 0;
  unsigned memory_mhz = 0;
  std::vector<std::string> reasons;
};

// (timed call, set) in each keep slot; its inputs were those of index warmup_count + call + 1; a
// call counts even when its sample is discarded.
using KeptCalls = std::vector<std::pair<std::size_t, std::size_t>>;

struct Measurement {
  std::vector<double>
      samples_ns;                 // by device events if the device times by them, else steady clock
  std::vector<double> device_ns;  // by events, beside the steady clock; empty without events
  std::vector<double> host_ns;    // by the steady clock, beside events
  std::vector<double> prepare_ns;  // of `prepare` before each call; empty if nothing is prepared
  std::vector<ClockBlock> clocks;  // empty if the device reports none
  std::string stop_reason;
  std::size_t discarded_count = 0;  // samples of a throttled device
  std::size_t warmup_count = 0;
  double elapsed_ns = 0;
  double half_width = 0;
  KeptCalls kept;
  std::size_t guest_calls = 0;  // on guests 0, 1, … in turn
};

[[nodiscard]] Measurement measure(Trial& trial, const MeasureOptions& options,
                                  const StoppingCriterion& criterion);

struct KeptCallsOptions {
  std::size_t set_count = 1;
  std::size_t keep_count = 0;
  bool has_guests = false;
  std::size_t warmup_count = 0;
  std::size_t call_count = 0;
};

// Returns the calls that `measure` keeps, given how many it made. The judge compares a runner's
// report with them.
[[nodiscard]] KeptCalls kept_calls(const KnownCallDraws& draws, const KeptCallsOptions& options);

using SteadyClock = std::chrono::steady_clock;

[[nodiscard]] inline double since_ns(SteadyClock::time_point start) {
  return std::chrono::duration<double, std::nano>(SteadyClock::now() - start).count();
}

}  // namespace kernel_foundry
