#include "timed_call.hpp"

#include <algorithm>

namespace kernel_foundry {
namespace {

// Holds the device's queue while it lives, if the device can.
class Hold {
 public:
  Hold(Device& device, bool is_wanted) : device_(device), holds_(is_wanted && device.hold()) {}
  ~Hold() { release(); }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
  Hold(Hold&&) = delete;  // the destructor lets go once
  Hold& operator=(Hold&&) = delete;

  void release() {
    if (holds_) device_.release_hold();
    holds_ = false;
  }
  [[nodiscard]] bool holds() const noexcept { return holds_; }

 private:
  Device& device_;
  bool holds_;
};

CallTime timed_by_host(Device& device, const std::function<void()>& enqueue) {
  const SteadyClock::time_point begin = SteadyClock::now();
  enqueue();
  device.wait();
  return {since_ns(begin), device.span_ns()};
}

}  // namespace

CallTime timed_call(Device& device, bool may_hold, const std::function<void()>& enqueue) {
  if (!device.times_by_events()) return timed_by_host(device, enqueue);
  const double overhead_ns = device.event_overhead_ns();  // the first time it uses the events
  if (may_hold) device.wait();  // else the host's span would begin with the flush
  SteadyClock::time_point begin = SteadyClock::now();
  {
    Hold hold(device, may_hold);
    device.mark_start();
    enqueue();
    device.mark_end();
    if (hold.holds()) begin = SteadyClock::now();
  }
  device.wait();
  const double host_ns = since_ns(begin);
  // A span as short as the overhead is that of nothing.
  return {std::max(device.marked_ns() - overhead_ns, 1.0), host_ns};
}

}  // namespace kernel_foundry
