#include "compare.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "element.hpp"
#include "host_memory.hpp"
#include "parallel.hpp"

namespace kernel_foundry {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// What one thread saw of its part.
struct Part {
  Comparison found;
  double least_factor = std::numeric_limits<double>::infinity();
  double greatest_factor = -std::numeric_limits<double>::infinity();
  bool has_factor = true;  // until a mismatch has no usable ratio
};

template <typename T>
bool is_poison(T element) {
  unsigned char bytes[sizeof(T)];
  std::memcpy(bytes, &element, sizeof(T));
  return std::all_of(bytes, bytes + sizeof(T), [](unsigned char b) { return b == poison_byte; });
}

template <typename T>
void note_mismatch(Part& part, T element, double actual, double expected, std::size_t index) {
  Comparison& found = part.found;
  ++found.mismatch_count;
  if (found.first_mismatch < 0) found.first_mismatch = static_cast<std::int64_t>(index);
  found.poisoned_count += is_poison(element) ? 1 : 0;
  const double factor = actual / expected;
  if (!std::isfinite(factor)) {
    part.has_factor = false;
    return;
  }
  part.least_factor = std::min(part.least_factor, factor);
  part.greatest_factor = std::max(part.greatest_factor, factor);
}

// |actual - expected|: 0 for equal infinities and for two NaN, NaN for one; never 0 for integers
// that differ, however large.
template <typename T>
double error_of(T actual, T expected) {
  if constexpr (std::is_integral_v<T>) {
    const auto a = static_cast<std::uint64_t>(actual);
    const auto e = static_cast<std::uint64_t>(expected);
    return static_cast<double>(actual > expected ? a - e : e - a);
  } else {
    const double a = value_of(actual);
    const double e = value_of(expected);
    return a == e || (std::isnan(a) && std::isnan(e)) ? 0 : std::abs(a - e);
  }
}

template <typename T>
void compare_part(Part& part, const T* actual, const T* expected, const CompareOptions& options,
                  std::size_t begin, std::size_t end) {
  const float* scales = reinterpret_cast<const float*>(options.scale);
  Comparison& found = part.found;
  bool has_nan = false;
  for (std::size_t i = begin; i < end; ++i) {
    const double a = value_of(actual[i]);
    const double e = value_of(expected[i]);
    if (!std::isfinite(a)) {
      found.nan_count += std::isnan(a) ? 1 : 0;
      found.inf_count += std::isinf(a) ? 1 : 0;
    }
    const double error = error_of(actual[i], expected[i]);
    if (error == 0) continue;
    const double scale = scales == nullptr ? 1.0 : scales[(i / options.inner) % options.groups];
    const bool is_right = std::isfinite(a) && std::isfinite(e) &&
                          error <= options.atol * scale + options.rtol * std::abs(e);
    if (std::isnan(error)) {
      has_nan = true;
    } else {
      found.max_abs_error = std::max(found.max_abs_error, error);
      if (e != 0) found.max_rel_error = std::max(found.max_rel_error, error / std::abs(e));
    }
    if (!is_right) note_mismatch(part, actual[i], a, e, i);
  }
  if (has_nan) found.max_abs_error = found.max_rel_error = nan;
}

double larger(double a, double b) { return std::isnan(a) || std::isnan(b) ? nan : std::max(a, b); }

Comparison merge(const std::vector<Part>& parts) {
  Comparison whole;
  double least = std::numeric_limits<double>::infinity();
  double greatest = -least;
  bool has_factor = true;
  for (const Part& part : parts) {
    whole.mismatch_count += part.found.mismatch_count;
    whole.nan_count += part.found.nan_count;
    whole.inf_count += part.found.inf_count;
    whole.poisoned_count += part.found.poisoned_count;
    whole.max_abs_error = larger(whole.max_abs_error, part.found.max_abs_error);
    whole.max_rel_error = larger(whole.max_rel_error, part.found.max_rel_error);
    if (whole.first_mismatch < 0) whole.first_mismatch = part.found.first_mismatch;
    least = std::min(least, part.least_factor);
    greatest = std::max(greatest, part.greatest_factor);
    has_factor = has_factor && part.has_factor;
  }
  const bool is_shared =
      has_factor && whole.mismatch_count > 0 && greatest - least <= 1e-3 * std::abs(greatest);
  whole.constant_factor = is_shared ? (least + greatest) / 2 : nan;
  return whole;
}

}  // namespace

Comparison compare(std::uintptr_t actual, std::uintptr_t expected, const CompareOptions& options) {
  if (options.groups == 0 || options.inner == 0) {
    throw std::invalid_argument("groups and inner must be 1 or more");
  }
  std::vector<Part> parts(parallel_parts());
  const bool is_known = visit_element_type(options.dtype, [&]<typename T>(T) {
    parallel_for(options.count, std::size_t{1} << 18,
                 [&](std::size_t part, std::size_t begin, std::size_t end) {
                   compare_part(parts[part], reinterpret_cast<const T*>(actual),
                                reinterpret_cast<const T*>(expected), options, begin, end);
                 });
  });
  if (!is_known) throw std::invalid_argument("no element type called " + options.dtype);
  return merge(parts);
}

}  // namespace kernel_foundry
