#include "kernels.hpp"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "device_code.hpp"

// The device code of the comparison, once for each element type. `comparison.inc` is the text of
// cuda_compare_source.hpp.
#define Element float
namespace device_code::as_float32 {
#include "comparison.inc"
}
#undef Element
#define Element double
namespace device_code::as_float64 {
#include "comparison.inc"
}
#undef Element
#define Element Float16
namespace device_code::as_float16 {
#include "comparison.inc"
}
#undef Element
#define Element BFloat16
namespace device_code::as_bfloat16 {
#include "comparison.inc"
}
#undef Element
#define Element int
namespace device_code::as_int32 {
#include "comparison.inc"
}
#undef Element
#define Element long long
namespace device_code::as_int64 {
#include "comparison.inc"
}
#undef Element
#define Element short
namespace device_code::as_int16 {
#include "comparison.inc"
}
#undef Element
#define Element signed char
namespace device_code::as_int8 {
#include "comparison.inc"
}
#undef Element
#define Element unsigned char
namespace device_code::as_uint8 {
#include "comparison.inc"
}
#undef Element
#define Element Float8E4M3
namespace device_code::as_float8_e4m3fn {
#include "comparison.inc"
}
#undef Element
#define Element Float8E5M2
namespace device_code::as_float8_e5m2 {
#include "comparison.inc"
}
#undef Element

// The device code of a redraw, as its compiler takes it.
#define __CUDACC_RTC__
namespace device_code {
#include "redraw.hpp"
}

namespace fake_cuda {
namespace {

constexpr Result success = 0;
constexpr Result error_illegal_address = 700;

template <typename T>
T parameter(void** parameters, std::size_t position) {
  return *static_cast<T*>(parameters[position]);
}

// (const float* in, float* out, float factor, int count)
Result scale(void** parameters, unsigned) {
  const auto* in = parameter<const float*>(parameters, 0);
  std::transform(in, in + parameter<int>(parameters, 3), parameter<float*>(parameters, 1),
                 [factor = parameter<float>(parameters, 2)](float x) { return x * factor; });
  return success;
}

// (const float* in, float* out, int count), lasting two milliseconds
Result slow_copy(void** parameters, unsigned) {
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  const auto* in = parameter<const float*>(parameters, 0);
  std::copy(in, in + parameter<int>(parameters, 2), parameter<float*>(parameters, 1));
  return success;
}

// As in cuda_ranges.cpp; a row that is not used has no bytes.
struct Range {
  unsigned char* begin;
  unsigned long long bytes;
  unsigned word, unused;
};
struct Ranges {
  Range all[128];
};

// (Ranges ranges)
Result fill_ranges(void** parameters, unsigned) {
  for (const Range& range : static_cast<const Ranges*>(parameters[0])->all) {
    std::fill_n(range.begin, range.bytes, static_cast<unsigned char>(range.word));
  }
  return success;
}

// (Ranges ranges, unsigned* found)
Result find_other(void** parameters, unsigned) {
  const auto* ranges = static_cast<const Ranges*>(parameters[0])->all;
  for (unsigned i = 0; i < 128; ++i) {
    const auto byte = static_cast<unsigned char>(ranges[i].word);
    if (!std::all_of(ranges[i].begin, ranges[i].begin + ranges[i].bytes,
                     [byte](unsigned char x) { return x == byte; })) {
      *parameter<unsigned*>(parameters, 1) = i + 1;
    }
  }
  return success;
}

// (const uint4* from, unsigned long long count, unsigned* written)
Result read_all(void** parameters, unsigned) {
  const auto* from = parameter<const unsigned*>(parameters, 0);
  const auto end = from + 4 * parameter<unsigned long long>(parameters, 1);
  if (std::any_of(from, end, [](unsigned word) { return word != 0; })) {
    *parameter<unsigned*>(parameters, 2) = 1;
  }
  return success;
}

Result illegal(void**, unsigned) { return error_illegal_address; }

Result endless(void**, unsigned) {
  for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
}

// Calls a kernel's function for every block of the grid.
template <auto kernel, typename... Parameters>
Result run_blocks(void** parameters, unsigned blocks) {
  using namespace device_code;
  gridDim.x = blocks;
  for (unsigned block = 0; block < blocks; ++block) {
    blockIdx.x = block;
    [&]<std::size_t... at>(std::index_sequence<at...>) {
      kernel(parameter<Parameters>(parameters, at)...);
    }(std::index_sequence_for<Parameters...>{});
  }
  return success;
}

template <auto kernel, typename... Parameters>
Kernel device_kernel(std::string name, void (*)(Parameters...)) {
  return {std::move(name), run_blocks<kernel, Parameters...>};
}

// (MaskedRanges ranges), each by a row of blocks
Result mask_ranges(void** parameters, unsigned blocks) {
  using device_code::kernel_foundry::MaskedRanges;
  const unsigned count = static_cast<const MaskedRanges*>(parameters[0])->count;
  for (unsigned range = 0; range < count; ++range) {
    device_code::blockIdx.y = range;
    run_blocks<device_code::kernel_foundry::mask_ranges, MaskedRanges>(parameters, blocks);
  }
  return success;
}

#define COMPARISON(type)                                                                           \
  device_kernel<device_code::as_##type::compare_elements>(                                         \
      "compare_" #type, device_code::as_##type::compare_elements)

const std::vector<Kernel> kernels = {
    {"scale", scale},
    {"slow_copy", slow_copy},
    {"fill_ranges", fill_ranges},
    {"find_other", find_other},
    {"read_all", read_all},
    {"mask_ranges", mask_ranges},
    {"illegal", illegal},
    {"endless", endless},
    COMPARISON(float32),
    COMPARISON(float64),
    COMPARISON(float16),
    COMPARISON(bfloat16),
    COMPARISON(float8_e4m3fn),
    COMPARISON(float8_e5m2),
    COMPARISON(int32),
    COMPARISON(int64),
    COMPARISON(int16),
    COMPARISON(int8),
    COMPARISON(uint8),
    device_kernel<device_code::kernel_foundry::redraw_tensor>(
        "redraw_tensor", device_code::kernel_foundry::redraw_tensor),
    device_kernel<device_code::as_float32::find_difference>(
        "find_difference", device_code::as_float32::find_difference),
};

}  // namespace

const Kernel* find_kernel(const std::string& name) {
  const auto found = std::ranges::find(kernels, name, &Kernel::name);
  return found == kernels.end() ? nullptr : &*found;
}

}  // namespace fake_cuda
