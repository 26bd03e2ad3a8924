// A flat list of launches that is replayed with no interpreter in between.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "device.hpp"
#include "measure.hpp"

namespace kernel_foundry {

// A stretch of one bound buffer.
struct Region {
  std::size_t buffer;
  std::size_t size_bytes;
};

class LaunchSequence {
 public:
  explicit LaunchSequence(std::shared_ptr<Device> device) : device_(std::move(device)) {}

  void launch(Launch launch) { steps_.emplace_back(std::move(launch)); }
  void clear(Region region) { steps_.emplace_back(region); }
  // Sets the addresses of set `set`, one for each buffer index.
  void bind(std::size_t set, std::vector<std::uintptr_t> addresses);
  // Runs every step on set `set` and waits. Throws LaunchError.
  void run(std::size_t set);
  [[nodiscard]] std::size_t set_count() const noexcept { return sets_.size(); }
  [[nodiscard]] const std::vector<std::uintptr_t>& addresses(std::size_t set) const;
  [[nodiscard]] Device& device() const noexcept { return *device_; }

 private:
  std::shared_ptr<Device> device_;
  std::vector<std::variant<Launch, Region>> steps_;
  std::vector<std::vector<std::uintptr_t>> sets_;
};

// Measures a sequence: outputs are poisoned before each call, some are kept.
class SequenceTrial final : public Trial {
 public:
  // `keep_into[slot]` holds one address for each output region.
  SequenceTrial(LaunchSequence& sequence, std::vector<Region> outputs,
                std::vector<std::vector<std::uintptr_t>> keep_into, std::size_t flush_bytes);

  void poison(std::size_t set) override;
  void flush() override;
  void run(std::size_t set) override;
  [[nodiscard]] double device_ns() const override;
  void keep(std::size_t slot, std::size_t set) override;

 private:
  LaunchSequence& sequence_;
  std::vector<Region> outputs_;
  std::vector<std::vector<std::uintptr_t>> keep_into_;
  std::size_t flush_bytes_;
};

}  // namespace kernel_foundry
