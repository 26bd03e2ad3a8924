// When a measurement has enough samples.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace kernel_foundry {

// Half-width of the 95 % confidence interval of the median over the median, from order
// statistics (no assumption on the distribution); infinity below six samples.
[[nodiscard]] double relative_half_width(const std::vector<double>& samples);

// Decides after each sample whether to stop; returns the reason when it does.
class StoppingCriterion {
 public:
  virtual ~StoppingCriterion() = default;
  [[nodiscard]] virtual std::optional<std::string> finished(const std::vector<double>& samples_ns,
                                                            double elapsed_seconds) const = 0;
};

// Stops when the median is known well enough, at a sample or time budget, or when the best
// sample is far behind an incumbent's median.
class MedianCriterion final : public StoppingCriterion {
 public:
  struct Options {
    std::size_t min_samples = 10;
    std::size_t max_samples = 1000;
    double max_seconds = 1;  // three times that for the first three samples
    double target_half_width = 0.01;
    double stop_above_ns = 0;  // an incumbent's time; 0: never
    // How far the best sample has to be behind it: noise on a shared machine stays well below.
    double stop_factor = 1.5;
    // Clocks that tick coarsely make few short samples look more alike than they are.
    double min_seconds = 0;
  };

  explicit MedianCriterion(Options options) : options_(options) {}
  [[nodiscard]] std::optional<std::string> finished(const std::vector<double>& samples_ns,
                                                    double elapsed_seconds) const override;

 private:
  Options options_;
};

}  // namespace kernel_foundry
