#include "measure.hpp"

#include <chrono>
#include <cmath>
#include <optional>
#include <random>

namespace kernel_foundry {
namespace {

using Clock = std::chrono::steady_clock;

double since_ns(Clock::time_point start) {
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

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

// Keeps a uniform choice of the timed calls without knowing how many there will be.
// Source: reservoir sampling, algorithm R.
void maybe_keep(Trial& trial, Measurement& result, SetOrder& order, std::size_t keep_count,
                std::size_t set) {
  const std::size_t sample = result.samples_ns.size() - 1;
  if (keep_count == 0) return;
  if (sample < keep_count) {
    trial.keep(sample, set);
    result.kept.emplace_back(sample, set);
    return;
  }
  const std::size_t slot = order.below(sample + 1);
  if (slot < keep_count) {
    trial.keep(slot, set);
    result.kept[slot] = {sample, set};
  }
}

}  // namespace

Measurement measure(Trial& trial, const MeasureOptions& options,
                    const StoppingCriterion& criterion) {
  Measurement result;
  SetOrder order(options.set_count, options.order_seed);
  const Clock::time_point start = Clock::now();
  for (; result.warmup_count < options.warmup_calls; ++result.warmup_count) {
    // A call of seconds is warm after one.
    if (result.warmup_count > 0 && since_ns(start) > options.stopping.max_seconds * 0.5e9) break;
    trial.run(order.next());
  }
  std::optional<std::string> reason;
  while (!reason) {
    const std::size_t set = order.next();
    trial.poison(set);
    if (options.is_cold) trial.flush();
    const Clock::time_point begin = Clock::now();
    trial.run(set);
    result.samples_ns.push_back(since_ns(begin));
    if (const double span = trial.device_ns(); !std::isnan(span)) result.device_ns.push_back(span);
    maybe_keep(trial, result, order, options.keep_count, set);
    reason = criterion.finished(result.samples_ns, since_ns(start) * 1e-9);
  }
  result.stop_reason = *reason;
  result.half_width = relative_half_width(result.samples_ns);
  result.elapsed_ns = since_ns(start);
  return result;
}

}  // namespace kernel_foundry
