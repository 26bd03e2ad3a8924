#include "measure.hpp"

#include <cmath>
#include <cstdint>
#include <optional>
#include <stdexcept>

#include "call_draws.hpp"
#include "clock_watch.hpp"

namespace kernel_foundry {
namespace {

// Decides about one call after the other. While a kernel runs, nothing in memory reveals whether
// its call has a guest's inputs or will be kept: the draw is read again when the call has ended.
// The functions are not inlined, so that their frames and registers are dead, and cleared, before
// the launch.
class Decisions {
 public:
  explicit Decisions(const MeasureOptions& options)
      : draws_(options.draws), set_count_(options.set_count), keep_count_(options.keep_count) {}

  [[nodiscard]] bool can_lend() const noexcept { return draws_.can_be_read_again(); }

  // The set of the next call.
  [[gnu::noinline]] std::size_t next() {
    CallDraw draw;
    draws_.read(made_++, draw);
    last_set_ = next_set(draw.set, last_set_, set_count_);
    wipe(draw);
    return last_set_;
  }

  // Whether the call that `next` began has a guest's inputs.
  [[gnu::noinline]] bool has_guest(std::size_t call) const {
    CallDraw draw;
    draws_.read(made_ - 1, draw);
    const bool found = is_guest(draw.guest, call);
    wipe(draw);
    return found;
  }

  [[gnu::noinline]] std::optional<std::size_t> slot(std::size_t call) const {
    if (keep_count_ == 0) return std::nullopt;
    CallDraw draw;
    draws_.read(made_ - 1, draw);
    const auto found = keep_slot(draw.keep, keep_count_, call);
    wipe(draw);
    return found;
  }

 private:
  static void wipe(CallDraw& draw) {
    draw = {};
    asm volatile("" : : "r"(&draw) : "memory");  // keep the compiler from removing this store
  }

  CallDraws draws_;
  std::size_t set_count_, keep_count_;
  std::size_t last_set_ = 0;
  std::size_t made_ = 0;
};

// Calls among the timed ones that have the inputs of guests, in turn. They are made like timed
// calls, at the same place of the same loop, but their times are dropped.
class GuestCalls {
 public:
  GuestCalls(Trial& trial, const Decisions& decisions) : trial_(trial), decisions_(decisions) {
    if (trial.guest_count() > 0 && !decisions.can_lend()) {
      throw std::invalid_argument("guests need a file of draws");
    }
  }

  // Called before timed call number `call`, when its set is chosen.
  [[gnu::noinline]] void lend_if_due(std::size_t call, std::size_t set) {
    if (is_due(call)) trial_.lend(set, guest());
  }

  // Called after it; returns whether the call had a guest's inputs.
  [[gnu::noinline]] bool take_back_if_lent(std::size_t call, std::size_t set) {
    if (!is_due(call)) return false;
    trial_.take_back(set, guest());
    ++count_;
    return true;
  }

  [[nodiscard]] std::size_t count() const noexcept { return count_; }

  // Makes a guest's call after the last one if there was none, since a measurement may be short.
  void make_if_none(const MeasureOptions& options, std::size_t set) {
    if (trial_.guest_count() == 0 || count_ > 0) return;
    trial_.lend(set, guest());
    trial_.poison(set);
    if (options.is_cold) trial_.flush();
    static_cast<void>(trial_.call(set));
    trial_.take_back(set, guest());
    ++count_;
  }

 private:
  [[nodiscard]] bool is_due(std::size_t call) const {
    return trial_.guest_count() > 0 && decisions_.has_guest(call);
  }
  [[nodiscard]] std::size_t guest() const { return count_ % trial_.guest_count(); }

  Trial& trial_;
  const Decisions& decisions_;
  std::size_t count_ = 0;
};

void note_kept(KeptCalls& kept, std::size_t slot, std::size_t call, std::size_t set) {
  if (slot == kept.size()) kept.emplace_back();
  kept[slot] = {call, set};
}

void note_time(Measurement& result, const CallTime& time, bool times_by_events) {
  result.samples_ns.push_back(time.figure_ns);
  if (std::isnan(time.beside_ns)) return;
  (times_by_events ? result.host_ns : result.device_ns).push_back(time.beside_ns);
}

std::size_t warm_up(Trial& trial, const MeasureOptions& options, Decisions& decisions) {
  const SteadyClock::time_point start = SteadyClock::now();
  std::size_t count = 0;
  for (; count < options.warmup_calls; ++count) {
    // A call of seconds is warm after one.
    if (count > 0 && since_ns(start) > options.stopping.max_seconds * 0.5e9) break;
    const std::size_t set = decisions.next();
    trial.redraw(set, static_cast<std::uint32_t>(count + 1));
    trial.poison(set);
    static_cast<void>(trial.call(set));
  }
  return count;
}

Measurement measure_redrawn(Trial& trial, const MeasureOptions& options,
                            const StoppingCriterion& criterion) {
  Measurement result;
  Decisions decisions(options);
  GuestCalls guests(trial, decisions);
  const SteadyClock::time_point start = SteadyClock::now();
  result.warmup_count = warm_up(trial, options, decisions);
  ClockWatch watch(trial.clocks());
  for (std::size_t call = 0;;) {
    const std::size_t set = decisions.next();
    trial.redraw(set, static_cast<std::uint32_t>(result.warmup_count + call + 1));
    guests.lend_if_due(call, set);
    trial.poison(set);
    if (options.is_cold) trial.flush();
    const std::optional<double> prepare_ns = trial.prepare_ns();
    const CallTime time = trial.call(set);
    if (guests.take_back_if_lent(call, set)) continue;
    if (prepare_ns) result.prepare_ns.push_back(*prepare_ns);
    note_time(result, time, trial.times_by_events());
    if (const auto slot = decisions.slot(call)) {
      trial.keep(*slot, set);
      note_kept(result.kept, *slot, call, set);
    }
    ++call;
    const auto reason = criterion.finished(result.samples_ns, since_ns(start) * 1e-9);
    if (!reason) {
      watch.note(result);
    } else if (watch.settle(result, *reason == "budget")) {
      result.stop_reason = *reason;
      break;
    }
  }
  guests.make_if_none(options, decisions.next());
  result.guest_calls = guests.count();
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

KeptCalls kept_calls(const KnownCallDraws& draws, const KeptCallsOptions& options) {
  KeptCalls kept;
  std::size_t set = 0, made = 0;
  const auto next = [&] {
    const CallDraw draw = draws.at(made++);
    set = next_set(draw.set, set, options.set_count);
    return draw;
  };
  while (made < options.warmup_count) static_cast<void>(next());
  for (std::size_t call = 0; call < options.call_count; ++call) {
    CallDraw draw = next();
    while (options.has_guests && is_guest(draw.guest, call)) draw = next();
    if (options.keep_count == 0) continue;
    if (const auto slot = keep_slot(draw.keep, options.keep_count, call)) {
      note_kept(kept, *slot, call, set);
    }
  }
  return kept;
}

}  // namespace kernel_foundry
