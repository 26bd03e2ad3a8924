// Times one call: by device events, minus the event pair's overhead, or by the host's clock.
#pragma once

#include <functional>

#include "device.hpp"
#include "measure.hpp"

namespace kernel_foundry {

// Times what `enqueue` enqueues, to its completion. If the device times by events, the figure is
// their span minus the event pair's overhead. The work should be in the queue before it starts, or
// the time to submit it would be part of the span: with `may_hold` the queue is held until then,
// else only work enqueued before (a flush) hides it.
[[nodiscard]] CallTime timed_call(Device& device, bool may_hold,
                                  const std::function<void()>& enqueue);

}  // namespace kernel_foundry
