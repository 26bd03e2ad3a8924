#include "measure.hpp"

#include <cmath>
#include <optional>
#include <random>

#include "clock_watch.hpp"

namespace kernel_foundry {
namespace {

// Picks the next set at random, never the one before when there is a choice.
class SetOrder {
 public:
  SetOrder(std::size_t count, std::uint64_t seed) : count_(count), random_(seed) {}

  std::size_t next() {
    if (count_ == 1) return 0;
    const std::size_t step = 1 + random_() % (count_ - 1);
    last_ = (last_ + step) % count_;
    return last_;
  }

  std::size_t below(std::size_t bound) { return random_() % bound; }

 private:
  std::size_t count_;
  std::size_t last_ = 0;
  std::mt19937_64 random_;
};

// Where to keep a call, if at all: a uniform choice without knowing how many there will be.
// Source: reservoir sampling, algorithm R.
std::optional<std::size_t> keep_slot(SetOrder& order, std::size_t keep_count, std::size_t call) {
  if (keep_count == 0) return std::nullopt;
  const std::size_t slot = call < keep_count ? call : order.below(call + 1);
  return slot < keep_count ? std::optional(slot) : std::nullopt;
}

void note_kept(KeptCalls& kept, std::size_t slot, std::size_t call, std::size_t set) {
  if (slot == kept.size()) kept.emplace_back();
  kept[slot] = {call, set};
}

void note_time(Measurement& result, const CallTime& time, bool times_by_events) {
  result.samples_ns.push_back(time.figure_ns);
  if (std::isnan(time.beside_ns)) return;
  (times_by_events ? result.host_ns : result.device_ns).push_back(time.beside_ns);
}

std::size_t warm_up(Trial& trial, const MeasureOptions& options, SetOrder& order) {
  const SteadyClock::time_point start = SteadyClock::now();
  std::size_t count = 0;
  for (; count < options.warmup_calls; ++count) {
    // A call of seconds is warm after one.
    if (count > 0 && since_ns(start) > options.stopping.max_seconds * 0.5e9) break;
    const std::size_t set = order.next();
    trial.redraw(set, static_cast<std::uint32_t>(count + 1));
    trial.poison(set);
    static_cast<void>(trial.call(set));
  }
  return count;
}

Measurement measure_redrawn(Trial& trial, const MeasureOptions& options,
                            const StoppingCriterion& criterion) {
  Measurement result;
  SetOrder order(options.set_count, options.order_seed);
  const SteadyClock::time_point start = SteadyClock::now();
  result.warmup_count = warm_up(trial, options, order);
  ClockWatch watch(trial.clocks());
  for (std::size_t call = 0;; ++call) {
    const std::size_t set = order.next();
    trial.redraw(set, static_cast<std::uint32_t>(result.warmup_count + call + 1));
    trial.poison(set);
    if (options.is_cold) trial.flush();
    if (const auto prepare_ns = trial.prepare_ns()) result.prepare_ns.push_back(*prepare_ns);
    note_time(result, trial.call(set), trial.times_by_events());
    if (const auto slot = keep_slot(order, options.keep_count, call)) {
      trial.keep(*slot, set);
      note_kept(result.kept, *slot, call, set);
    }
    const auto reason = criterion.finished(result.samples_ns, since_ns(start) * 1e-9);
    if (!reason) {
      watch.note(result);
    } else if (watch.settle(result, *reason == "budget")) {
      result.stop_reason = *reason;
      break;
    }
  }
  result.half_width = relative_half_width(result.samples_ns);
  result.elapsed_ns = since_ns(start);
  return result;
}

}  // namespace

Measurement measure(Trial& trial, const MeasureOptions& options,
                    const StoppingCriterion& criterion) {
  Measurement result;
  try {
    result = measure_redrawn(trial, options, criterion);
  } catch (...) {
    trial.restore();
    throw;
  }
  trial.restore();
  return result;
}

KeptCalls kept_calls(const MeasureOptions& options, std::size_t warmup_count,
                     std::size_t call_count) {
  KeptCalls kept;
  SetOrder order(options.set_count, options.order_seed);
  for (std::size_t call = 0; call < warmup_count; ++call) static_cast<void>(order.next());
  for (std::size_t call = 0; call < call_count; ++call) {
    const std::size_t set = order.next();
    if (const auto slot = keep_slot(order, options.keep_count, call)) {
      note_kept(kept, *slot, call, set);
    }
  }
  return kept;
}

}  // namespace kernel_foundry
