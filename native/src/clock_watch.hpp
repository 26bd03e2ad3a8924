// Divides the samples of a measurement into blocks between two readings of the device's clocks,
// and drops the blocks in which the device was throttled.
#pragma once

#include <optional>

#include "clocks.hpp"
#include "measure.hpp"

namespace kernel_foundry {

class ClockWatch {
 public:
  // Takes the first reading. With null `clocks` there are no blocks, and no sample is dropped.
  explicit ClockWatch(Clocks* clocks);

  // Called after each sample but the last. Ends the block when it has lasted long enough.
  void note(Measurement& result);
  // Ends the last block before the measurement stops. Returns false if its samples were dropped and
  // there is time for others. If time is up and no other sample counts, the block is kept.
  [[nodiscard]] bool settle(Measurement& result, bool is_out_of_time);

 private:
  [[nodiscard]] bool end_block(Measurement& result, bool takes_any);

  Clocks* clocks_;
  std::optional<ClockReading> before_;
  SteadyClock::time_point read_at_;
  std::size_t settled_count_ = 0;  // samples in finished blocks
};

}  // namespace kernel_foundry
