// One call by the clock that counts on its device.
#pragma once

#include <functional>

#include "device.hpp"
#include "measure.hpp"

namespace kernel_foundry {

// Times what `enqueue` enqueues, to its completion. Where the device times by events, they are what
// counts, less the overhead of their own. The work should be in the queue before it starts, or the
// time to submit it would be part of the span: with `may_hold` the queue is held until then, else
// only work enqueued before (a flush) hides it.
[[nodiscard]] CallTime timed_call(Device& device, bool may_hold,
                                  const std::function<void()>& enqueue);

}  // namespace kernel_foundry
