// Divides the samples of a measurement into blocks between two readings of the device's clocks,
// and drops the blocks in which the device was throttled.
#pragma once

#include <optional>

#include "clocks.hpp"
#include "measure.hpp"

namespace kernel_foundry {

class ClockWatch {
 public:
  // Takes the first reading. `clocks` may be null: then there are no blocks and nothing is dropped.
  explicit ClockWatch(Clocks* clocks);

  // Called after each sample but the last: ends a block when it has lasted long enough.
  void note(Measurement& result);
  // Ends the block at hand before the measurement stops; false when its samples were dropped and
  // there is time for others. Without time, and with no sample that counts, it is taken as it is.
  [[nodiscard]] bool settle(Measurement& result, bool is_out_of_time);

 private:
  [[nodiscard]] bool end_block(Measurement& result, bool takes_any);

  Clocks* clocks_;
  std::optional<ClockReading> before_;
  SteadyClock::time_point read_at_;
  std::size_t settled_count_ = 0;  // samples in finished blocks
};

}  // namespace kernel_foundry
