#include "cuda_event_overhead.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

namespace kernel_foundry {
namespace {

using cuda::check;
using cuda::driver;

constexpr const char* nothing = R"(
.version 6.4
.target sm_75
.address_size 64
.visible .entry nothing()
{
  ret;
}
)";

// Duration of the kernel itself: ncu's gpu__time_duration on an H200.
constexpr double kernel_ns = 1540;
constexpr std::size_t sample_count = 200;
constexpr std::size_t caches_of_a_flush = 2;

// The mean of the middle half is as robust as a median, and finer than the events' clock, which
// ticks every 32 ns.
double mean_of_middle(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto quarter = static_cast<std::ptrdiff_t>(values.size() / 4);
  const auto first = values.begin() + quarter;
  const auto last = values.end() - quarter;
  return std::accumulate(first, last, 0.0) / static_cast<double>(last - first);
}

}  // namespace

CudaEventOverhead::CudaEventOverhead(const cuda::SharedContext& context) {
  cuda::Module module = nullptr;
  check(driver().module_load_data_ex(&module, nothing, 0, nullptr, nullptr),
        "cuModuleLoadDataEx of PTX");
  module_ = cuda::UniqueModule(context, module);
  check(driver().module_get_function(&kernel_, module, "nothing"), "cuModuleGetFunction");
}

double CudaEventOverhead::nanoseconds(Device& device) {
  if (measured_ns_) return *measured_ns_;
  const auto stream = reinterpret_cast<cuda::Stream>(device.stream());
  std::vector<double> spans_ns;
  for (std::size_t i = 0; i < sample_count; ++i) {
    device.flush(caches_of_a_flush * device.facts().cache_bytes);
    device.wait();
    const bool is_held = device.hold();
    device.mark_start();
    check(driver().launch_kernel(kernel_, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr),
          "cuLaunchKernel of nothing");
    device.mark_end();
    if (is_held) device.release_hold();
    device.wait();
    spans_ns.push_back(device.marked_ns());
  }
  measured_ns_ = std::max(mean_of_middle(std::move(spans_ns)) - kernel_ns, 0.0);
  return *measured_ns_;
}

}  // namespace kernel_foundry
