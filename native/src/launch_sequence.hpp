// A flat list of launches that is replayed with no interpreter in between.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "device.hpp"

namespace kernel_foundry {

// A stretch of one bound buffer.
struct Region {
  std::size_t buffer;
  std::size_t size_bytes;
};

// A host function that enqueues work of its own on the device's stream. Where `result` names a
// buffer, the address it returns is that buffer's for the steps that follow.
struct HostCall {
  std::function<std::uintptr_t(std::size_t set)> function;
  std::optional<std::size_t> result;
};

class LaunchSequence {
 public:
  explicit LaunchSequence(std::shared_ptr<Device> device) : device_(std::move(device)) {}

  void launch(Launch launch) { append(std::move(launch)); }
  void clear(Region region) { append(region); }
  void call(HostCall call);
  // Sets the addresses of set `set`, one for each buffer index.
  void bind(std::size_t set, std::vector<std::uintptr_t> addresses);

  // Queues every step on set `set`, as a graph where one was captured. Throws LaunchError.
  void enqueue(std::size_t set);
  // The same, and waits.
  void run(std::size_t set);
  // Runs step by step, on caches that were emptied before the first where `flush_bytes` are given;
  // the time of each, in nanoseconds.
  [[nodiscard]] std::vector<double> profile(std::size_t set, std::size_t flush_bytes);
  // Records the steps of a set, for `enqueue` to replay; does nothing with host calls among them,
  // and on devices without graphs.
  void capture(std::size_t set);
  // Runs until the kernels are loaded and it is known whether a run is short.
  void prepare();

  // Whether the device's queue may be held while the sequence is enqueued, and it is worth it.
  [[nodiscard]] bool may_be_held(std::size_t set) const;
  [[nodiscard]] std::size_t step_count() const noexcept { return steps_.size(); }
  [[nodiscard]] std::size_t set_count() const noexcept { return sets_.size(); }
  [[nodiscard]] const std::vector<std::uintptr_t>& addresses(std::size_t set) const;
  // Those of the last run, with the results of its calls.
  [[nodiscard]] const std::vector<std::uintptr_t>& last_addresses() const noexcept { return last_; }
  [[nodiscard]] Device& device() const noexcept { return *device_; }

 private:
  using Step = std::variant<Launch, Region, HostCall>;

  void append(Step step);
  void enqueue_step(const Step& step, std::size_t set);
  [[nodiscard]] bool is_short() const noexcept;

  std::shared_ptr<Device> device_;
  std::vector<Step> steps_;
  std::vector<std::vector<std::uintptr_t>> sets_;
  std::vector<std::unique_ptr<Graph>> graphs_;  // of each set; null: not captured
  std::vector<std::uintptr_t> last_;
  bool has_calls_ = false;
  std::size_t run_count_ = 0;
  double shortest_run_ns_ = std::numeric_limits<double>::infinity();  // by the host's clock
};

}  // namespace kernel_foundry
