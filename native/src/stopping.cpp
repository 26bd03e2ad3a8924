#include "stopping.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kernel_foundry {
namespace {

constexpr std::size_t samples_before_dropping = 3;
constexpr std::size_t samples_that_scatter = 3;
constexpr double slow_calls_share = 3.0;  // of the budget, for that many samples

}  // namespace

double relative_half_width(const std::vector<double>& samples) {
  const std::size_t count = samples.size();
  if (count < 6) return std::numeric_limits<double>::infinity();
  std::vector<double> sorted = samples;
  std::sort(sorted.begin(), sorted.end());
  // Ranks of the interval by the normal approximation of the binomial, with its correction for
  // continuity: n/2 ∓ (1.96 √n/2 + 1/2). From six samples on both lie within the sample.
  const double n = static_cast<double>(count);
  const auto low = static_cast<std::size_t>(std::floor(n / 2 - 0.98 * std::sqrt(n) - 0.5));
  const std::size_t high = count - 1 - low;
  return (sorted[high] - sorted[low]) / 2 / sorted[count / 2];
}

std::optional<std::string> MedianCriterion::finished(const std::vector<double>& samples_ns,
                                                     double elapsed_seconds) const {
  const std::size_t count = samples_ns.size();
  if (options_.stop_above_ns > 0 && count >= samples_before_dropping &&
      *std::min_element(samples_ns.begin(), samples_ns.end()) >
          options_.stop_factor * options_.stop_above_ns) {
    return "slower_than_incumbent";
  }
  if (count >= options_.min_samples && elapsed_seconds >= options_.min_seconds &&
      relative_half_width(samples_ns) <= options_.target_half_width) {
    return "converged";
  }
  if (count >= options_.max_samples) return "max_samples";
  // Fewer do not tell how they scatter; but a call may be as long as the whole budget, or longer.
  const double shares = count < samples_that_scatter ? slow_calls_share : 1.0;
  if (count >= 1 && elapsed_seconds >= shares * options_.max_seconds) return "budget";
  return std::nullopt;
}

}  // namespace kernel_foundry
