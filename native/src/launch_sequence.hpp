// A flat list of launches that is replayed without an interpreter.
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

// The first bytes of one bound buffer.
struct Region {
  std::size_t buffer;
  std::size_t size_bytes;
};

// A host function that enqueues work of its own on the device's stream. If `result` names a buffer,
// the steps that follow find that buffer at the address that the function returns.
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

  // Queues every step on set `set`, as a graph if one was captured. Throws LaunchError.
  void enqueue(std::size_t set);
  // Queues the steps and waits for them.
  void run(std::size_t set);
  // Runs step by step and returns the time of each step in nanoseconds. Before the first one it
  // empties the caches with `flush_bytes` of other data; 0 leaves them as they are.
  [[nodiscard]] std::vector<double> profile(std::size_t set, std::size_t flush_bytes);
  // Records the steps of a set for `enqueue` to replay. Does nothing if there are host calls among
  // them, or if the device has no graphs.
  void capture(std::size_t set);
  // Makes runs until the kernels are loaded and the duration of a run is known.
  void prepare();

  // Whether the device's queue may be held while the sequence is enqueued, and holding it pays.
  [[nodiscard]] bool may_be_held(std::size_t set) const;
  [[nodiscard]] std::size_t step_count() const noexcept { return steps_.size(); }
  [[nodiscard]] std::size_t set_count() const noexcept { return sets_.size(); }
  [[nodiscard]] const std::vector<std::uintptr_t>& addresses(std::size_t set) const;
  // The addresses of the last run, with the results of its host calls.
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
