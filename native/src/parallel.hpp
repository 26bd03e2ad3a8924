// Splits an index range over the cores that this process may use.
#pragma once

#include <cstddef>
#include <functional>

namespace kernel_foundry {

// Calls `work(part, begin, end)` for contiguous parts of [0, count), one thread each, and waits.
// Ranges shorter than `grain` stay on the calling thread.
void parallel_for(std::size_t count, std::size_t grain,
                  const std::function<void(std::size_t, std::size_t, std::size_t)>& work);

// Most parts that `parallel_for` makes.
[[nodiscard]] std::size_t parallel_parts();

}  // namespace kernel_foundry
