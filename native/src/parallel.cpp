#include "parallel.hpp"

#include <sched.h>

#include <algorithm>
#include <thread>
#include <vector>

namespace kernel_foundry {

std::size_t parallel_parts() {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  if (sched_getaffinity(0, sizeof usable, &usable) != 0) return 1;
  // More threads than this only contend for memory bandwidth.
  return static_cast<std::size_t>(std::clamp(CPU_COUNT(&usable), 1, 16));
}

void parallel_for(std::size_t count, std::size_t grain,
                  const std::function<void(std::size_t, std::size_t, std::size_t)>& work) {
  const std::size_t wanted = grain == 0 ? 1 : (count + grain - 1) / grain;
  const std::size_t parts = std::clamp<std::size_t>(wanted, 1, parallel_parts());
  const std::size_t step = (count + parts - 1) / parts;
  std::vector<std::jthread> threads;
  for (std::size_t part = 1; part < parts; ++part) {
    const std::size_t begin = std::min(count, part * step);
    threads.emplace_back(work, part, begin, std::min(count, begin + step));
  }
  work(0, 0, std::min(count, step));
}

}  // namespace kernel_foundry
