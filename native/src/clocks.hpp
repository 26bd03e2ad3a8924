// Clocks of a device, as it reports them.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace kernel_foundry {

struct ClockReading {
  unsigned compute_mhz = 0;
  unsigned max_compute_mhz = 0;
  unsigned memory_mhz = 0;
  std::vector<std::string> reasons;  // why it runs no faster, in the driver's terms
  bool is_throttled = false;         // by heat or power supply, or far below its maximum
};

class Clocks {
 public:
  virtual ~Clocks() = default;
  // Nothing when the driver does not answer.
  [[nodiscard]] virtual std::optional<ClockReading> read() noexcept = 0;
};

}  // namespace kernel_foundry
