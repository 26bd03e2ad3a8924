#include "cuda_compare.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include "cuda_compare_source.hpp"

namespace kernel_foundry {
namespace {

constexpr std::size_t block = 256;
constexpr std::size_t bytes_of_a_turn = 32;  // of each tensor, that a work-item loads at once
// A multiple of the two or three that are resident, so that the last ones are not alone.
constexpr std::size_t groups_of_a_unit = 6;

using Element = CudaComparer::Element;

constexpr Element elements[] = {
    {"float32", "float", 4},
    {"float64", "double", 8},
    {"float16", "Float16", 2},
    {"bfloat16", "BFloat16", 2},
    {"int32", "int", 4},
    {"int64", "long long", 8},
    {"int16", "short", 2},
    {"int8", "signed char", 1},
    {"uint8", "unsigned char", 1},
    {"float8_e4m3fn", "Float8E4M3", 1},
    {"float8_e5m2", "Float8E5M2", 1},
};

const Element& element_of(const std::string& dtype) {
  const std::string stored = dtype == "bool" ? "uint8" : dtype;
  const auto* found = std::ranges::find(elements, stored, &Element::dtype);
  if (found == std::end(elements)) {
    throw std::invalid_argument("no element type called " + dtype);
  }
  return *found;
}

// The kernel, named after the type for whoever looks at a profile.
std::string compare_kernel(const Element& element) {
  return std::string("compare_") + element.dtype;
}

// `Found` of the device code.
struct Found {
  std::uint64_t mismatches, nans, infs, poisoned;
  std::uint64_t first_inverted, max_abs, max_rel, least_inverted, greatest, nan_errors, no_factor;
};

// Undoes `ordered` of the device code.
double from_ordered(std::uint64_t order) {
  constexpr std::uint64_t sign = std::uint64_t{1} << 63;
  return std::bit_cast<double>((order & sign) != 0 ? order ^ sign : ~order);
}

double shared_factor(const Found& found) {
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  if (found.mismatches == 0 || found.no_factor != 0) return none;
  const double least = from_ordered(~found.least_inverted);
  const double greatest = from_ordered(found.greatest);
  return greatest - least <= 1e-3 * std::abs(greatest) ? (least + greatest) / 2 : none;
}

Comparison comparison_of(const Found& found) {
  Comparison result;
  result.mismatch_count = static_cast<std::int64_t>(found.mismatches);
  result.nan_count = static_cast<std::int64_t>(found.nans);
  result.inf_count = static_cast<std::int64_t>(found.infs);
  result.poisoned_count = static_cast<std::int64_t>(found.poisoned);
  if (found.mismatches != 0) {
    result.first_mismatch = static_cast<std::int64_t>(~found.first_inverted);
  }
  if (found.nan_errors != 0) {
    result.max_abs_error = result.max_rel_error = std::numeric_limits<double>::quiet_NaN();
  } else {
    result.max_abs_error = std::bit_cast<double>(found.max_abs);
    result.max_rel_error = std::bit_cast<double>(found.max_rel);
  }
  result.constant_factor = shared_factor(found);
  return result;
}

Argument count_argument(std::size_t value) {
  return ScalarArgument{"int64", static_cast<std::int64_t>(value)};
}

Argument real_argument(double value) { return ScalarArgument{"float64", value}; }

}  // namespace

CudaComparer::CudaComparer(Device& device, Compile compile, Read read)
    : device_(device), compile_(std::move(compile)), read_(std::move(read)) {}

std::shared_ptr<Program> CudaComparer::program(const Element& element) {
  std::shared_ptr<Program>& known = programs_[element.dtype];
  if (!known) {
    const std::vector<std::string> kernels = {compare_kernel(element), "find_difference"};
    const std::string head = std::string("#define Element ") + element.device_type +
                             "\n#define compare_elements " + kernels[0] + "\n";
    known = device_.load(compile_(head + cuda_compare_source, kernels).code, kernels);
  }
  return known;
}

void CudaComparer::run(const Element& element, const std::string& kernel, std::size_t size_bytes,
                       const std::vector<std::uintptr_t>& addresses,
                       const std::vector<Argument>& scalars) {
  if (!found_) found_ = device_.allocate(sizeof(Found));
  device_.clear(found_->address(), sizeof(Found));
  Launch launch{program(element), kernel, {}, {block, 1, 1}, 1, 0, false, {}};
  const std::size_t turns = size_bytes / (block * bytes_of_a_turn) + 1;
  launch.grid = {std::min(turns, device_.facts().compute_units * groups_of_a_unit), 1, 1};
  std::vector<std::uintptr_t> bound = addresses;
  bound.push_back(found_->address());
  for (std::size_t i = 0; i < bound.size(); ++i) {
    launch.arguments.emplace_back(BufferArgument{i});
  }
  launch.arguments.insert(launch.arguments.end(), scalars.begin(), scalars.end());
  device_.enqueue(launch, bound);
  device_.wait();
}

Comparison CudaComparer::compare(std::uintptr_t actual, std::uintptr_t expected,
                                 const CompareOptions& options) {
  if (options.groups == 0 || options.inner == 0) {
    throw std::invalid_argument("groups and inner must be 1 or more");
  }
  const Element& element = element_of(options.dtype);
  if (options.count == 0) return comparison_of({});
  const std::lock_guard lock(one_at_a_time_);
  run(element, compare_kernel(element), options.count * element.size_bytes,
      {actual, expected, options.scale},
      {count_argument(options.count), count_argument(options.groups), count_argument(options.inner),
       real_argument(options.rtol), real_argument(options.atol)});
  Found found{};
  read_(&found, found_->address(), sizeof found);
  return comparison_of(found);
}

bool CudaComparer::same_bytes(std::uintptr_t a, std::uintptr_t b, std::size_t size_bytes) {
  if (size_bytes == 0) return true;
  const std::lock_guard lock(one_at_a_time_);
  // Any program has the kernel; that of float32 is the likeliest to be there.
  run(element_of("float32"), "find_difference", size_bytes, {a, b}, {count_argument(size_bytes)});
  std::uint64_t differs = 0;
  read_(&differs, found_->address(), sizeof differs);
  return differs == 0;
}

}  // namespace kernel_foundry
