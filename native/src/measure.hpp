// The measuring loop: the same for candidates and baselines, on every device kind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "stopping.hpp"

namespace kernel_foundry {

// What is measured. A set is one copy of inputs and outputs at addresses of its own.
class Trial {
 public:
  virtual ~Trial() = default;
  virtual void poison(std::size_t set) = 0;  // spoil the outputs, so that they must be written
  virtual void flush() = 0;                  // empty the caches of the measured data
  virtual void run(std::size_t set) = 0;     // one call, complete when it returns
  [[nodiscard]] virtual double device_ns() const = 0;        // span of the last call; NaN: unknown
  virtual void keep(std::size_t slot, std::size_t set) = 0;  // save the outputs of the last call
};

struct MeasureOptions {
  std::size_t warmup_calls = 3;
  std::size_t set_count = 1;
  std::size_t keep_count = 0;
  bool is_cold = true;
  std::uint64_t order_seed = 0;
  MedianCriterion::Options stopping;
};

struct Measurement {
  std::vector<double> samples_ns;  // steady clock, from the first submit to completion
  std::vector<double> device_ns;   // empty where the device gives none
  std::string stop_reason;
  std::size_t discarded_count = 0;
  std::size_t warmup_count = 0;
  double elapsed_ns = 0;
  double half_width = 0;
  std::vector<std::pair<std::size_t, std::size_t>> kept;  // (sample, set) in each keep slot
};

[[nodiscard]] Measurement measure(Trial& trial, const MeasureOptions& options,
                                  const StoppingCriterion& criterion);

}  // namespace kernel_foundry
