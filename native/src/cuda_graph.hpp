// Queued work of a CUDA stream, recorded once and launched as a whole.
#pragma once

#include <functional>
#include <memory>

#include "cuda_context.hpp"
#include "device.hpp"

namespace kernel_foundry {

// Records what `enqueue` puts on `stream`, which outlives the graph. Null when that cannot be
// recorded. The context must be current.
[[nodiscard]] std::unique_ptr<Graph> capture_cuda(const cuda::SharedContext& context,
                                                  cuda::Stream stream,
                                                  const std::function<void()>& enqueue);

}  // namespace kernel_foundry
