#include "clock_watch.hpp"

#include <algorithm>

namespace kernel_foundry {
namespace {

// A reading takes up to a millisecond, and throttling lasts for many milliseconds.
constexpr double least_block_ns = 5e6;

void drop_after(std::vector<double>& samples, std::size_t count) {
  if (samples.size() > count) samples.resize(count);
}

}  // namespace

ClockWatch::ClockWatch(Clocks* clocks) : clocks_(clocks), read_at_(SteadyClock::now()) {
  if (clocks_ != nullptr) before_ = clocks_->read();
  if (!before_) clocks_ = nullptr;
}

void ClockWatch::note(Measurement& result) {
  if (clocks_ == nullptr || since_ns(read_at_) < least_block_ns) return;
  static_cast<void>(end_block(result, false));
}

bool ClockWatch::settle(Measurement& result, bool is_out_of_time) {
  if (clocks_ == nullptr) return true;
  return end_block(result, is_out_of_time && settled_count_ == 0) || is_out_of_time;
}

bool ClockWatch::end_block(Measurement& result, bool takes_any) {
  const std::size_t sample_count = result.samples_ns.size() - settled_count_;
  const std::optional<ClockReading> after = clocks_->read();
  read_at_ = SteadyClock::now();
  if (sample_count == 0 || !after) return true;
  const bool is_throttled = before_->is_throttled || after->is_throttled;
  ClockBlock block{sample_count, before_->compute_mhz, after->compute_mhz, after->memory_mhz,
                   before_->reasons};
  for (const std::string& reason : after->reasons) {
    if (std::ranges::find(block.reasons, reason) == block.reasons.end()) {
      block.reasons.push_back(reason);
    }
  }
  before_ = after;
  if (is_throttled && !takes_any) {
    result.discarded_count += sample_count;
    drop_after(result.samples_ns, settled_count_);
    drop_after(result.device_ns, settled_count_);
    drop_after(result.host_ns, settled_count_);
    drop_after(result.prepare_ns, settled_count_);
    return false;
  }
  result.clocks.push_back(std::move(block));
  settled_count_ += sample_count;
  return true;
}

}  // namespace kernel_foundry
