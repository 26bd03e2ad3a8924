#include "cuda_device.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "cuda_compare.hpp"
#include "cuda_compiler.hpp"
#include "cuda_context.hpp"
#include "cuda_facts.hpp"
#include "cuda_hold.hpp"
#include "cuda_memory.hpp"
#include "cuda_program.hpp"
#include "error.hpp"

namespace kernel_foundry {
namespace {

using cuda::check;
using cuda::driver;

constexpr unsigned flushed_word = 0x3F800000;  // anything but what outputs are filled with

class CudaGraph final : public Graph {
 public:
  CudaGraph(cuda::SharedContext context, cuda::UniqueGraphExec exec, cuda::Stream stream)
      : context_(std::move(context)), exec_(std::move(exec)), stream_(stream) {}
  void launch() override {
    context_->make_current();
    cuda::check_launch(driver().graph_launch(exec_.get(), stream_), "cuGraphLaunch");
  }

 private:
  cuda::SharedContext context_;
  cuda::UniqueGraphExec exec_;
  cuda::Stream stream_;  // the device's, which outlives what it captured
};

// The stream records from construction to `end`, at the latest until this is gone.
class Recording {
 public:
  Recording(cuda::SharedContext context, cuda::Stream stream)
      : context_(std::move(context)), stream_(stream) {
    check(driver().stream_begin_capture(stream_, cuda::stream_capture_thread_local),
          "cuStreamBeginCapture");
    is_on_ = true;
  }
  ~Recording() { [[maybe_unused]] const cuda::UniqueGraph dropped = end(); }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  // Empty when something was enqueued that cannot be recorded.
  [[nodiscard]] cuda::UniqueGraph end() noexcept {
    cuda::Graph graph = nullptr;
    if (std::exchange(is_on_, false)) driver().stream_end_capture(stream_, &graph);
    return {context_, graph};
  }

 private:
  cuda::SharedContext context_;
  cuda::Stream stream_;
  bool is_on_ = false;
};

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(cuda::SharedContext context) : context_(std::move(context)) {
    context_->make_current();
    facts_ = cuda_facts(context_->device());
    // No kernel keeps its data in the cache beyond its own call. Devices without this do not know
    // the limit.
    driver().ctx_set_limit(cuda::limit_persisting_l2_cache_size, 0);
    stream_ = cuda::create_stream(context_);
    start_ = cuda::create_event(context_);
    end_ = cuda::create_event(context_);
    hold_.emplace(context_);
    comparer_.emplace(
        *this,
        [this](const std::string& source, const std::vector<std::string>& kernels) {
          return open_cuda_compiler(0, facts_.architecture)->compile(source, {}, kernels);
        },
        [this](void* to, std::uintptr_t from, std::size_t size_bytes) {
          copy(reinterpret_cast<std::uintptr_t>(to), from, size_bytes);
          wait();
        });
    event_overhead_ns_ = calibrate_events();
  }

  ~CudaDevice() override { release(); }

  [[nodiscard]] const DeviceFacts& facts() const noexcept override { return facts_; }

  [[nodiscard]] std::shared_ptr<Program> load(const std::string& code,
                                              const std::vector<std::string>& kernels) override {
    return CudaProgram::load(current(), code, kernels);
  }

  [[nodiscard]] std::unique_ptr<Buffer> allocate(std::size_t size_bytes) override {
    return allocate_cuda(current(), size_bytes);
  }

  void enqueue(const Launch& launch, const std::vector<std::uintptr_t>& addresses) override {
    current();
    dynamic_cast<CudaProgram&>(*launch.program).enqueue(launch, addresses, stream_.get());
  }

  void clear(std::uintptr_t address, std::size_t size_bytes) override {
    fill(address, size_bytes, 0);
  }

  void fill(std::uintptr_t address, std::size_t size_bytes, unsigned char byte) override {
    current();
    if (size_bytes == 0) return;
    if (address % 4 == 0 && size_bytes % 4 == 0) {
      check(driver().memset_d32_async(address, byte * 0x01010101u, size_bytes / 4, stream_.get()),
            "cuMemsetD32Async");
    } else {
      check(driver().memset_d8_async(address, byte, size_bytes, stream_.get()), "cuMemsetD8Async");
    }
  }

  void copy(std::uintptr_t to, std::uintptr_t from, std::size_t size_bytes) override {
    current();
    if (size_bytes == 0) return;
    check(driver().memcpy_async(to, from, size_bytes, stream_.get()), "cuMemcpyAsync");
  }

  void flush(std::size_t size_bytes) override {
    current();
    const std::size_t words = (size_bytes + 3) / 4;
    if (flushed_bytes_ < words * 4) {
      flushed_ = cuda::allocate(context_, words * 4);
      flushed_bytes_ = words * 4;
    }
    check(driver().memset_d32_async(flushed_.get(), flushed_word, words, stream_.get()),
          "cuMemsetD32Async");
  }

  void wait() override {
    current();
    hold_->release();  // or it would wait for itself
    check(driver().stream_synchronize(stream_.get()), "cuStreamSynchronize");
  }

  [[nodiscard]] double span_ns() override { return std::numeric_limits<double>::quiet_NaN(); }

  [[nodiscard]] Comparison compare(std::uintptr_t actual, std::uintptr_t expected,
                                   const CompareOptions& options) override {
    current();
    return comparer_->compare(actual, expected, options);
  }

  [[nodiscard]] bool same_bytes(std::uintptr_t a, std::uintptr_t b,
                                std::size_t size_bytes) override {
    current();
    return comparer_->same_bytes(a, b, size_bytes);
  }

  void release() noexcept override {
    comparer_.reset();
    if (hold_) hold_->release();
    flushed_.reset();
    flushed_bytes_ = 0;
    start_.reset();
    end_.reset();
    stream_.reset();
    hold_.reset();
    context_.reset();
  }

  [[nodiscard]] bool is_host_memory() const noexcept override { return false; }
  [[nodiscard]] std::uintptr_t stream() const noexcept override {
    return reinterpret_cast<std::uintptr_t>(stream_.get());
  }

  [[nodiscard]] bool times_by_events() const noexcept override { return true; }
  [[nodiscard]] double event_overhead_ns() const override { return event_overhead_ns_; }

  void mark_start() override { record(start_); }
  void mark_end() override { record(end_); }

  [[nodiscard]] double marked_ns() override {
    current();
    const auto elapsed = driver().event_elapsed_time_v2 != nullptr ? driver().event_elapsed_time_v2
                                                                   : driver().event_elapsed_time;
    float milliseconds = 0;
    check(elapsed(&milliseconds, start_.get(), end_.get()), "cuEventElapsedTime");
    return static_cast<double>(milliseconds) * 1e6;
  }

  [[nodiscard]] bool hold() override {
    current();
    return hold_->hold(stream_.get());
  }
  void release_hold() override {
    if (hold_) hold_->release();
  }

  [[nodiscard]] std::unique_ptr<kernel_foundry::Graph>
  capture(const std::function<void()>& enqueue) override;

  void reset_persisting_cache() override {
    current();
    if (driver().ctx_reset_persisting_l2_cache == nullptr) return;
    const cuda::Result result = driver().ctx_reset_persisting_l2_cache();
    // Devices without such lines refuse.
    if (cuda::is_launch_fault(result)) check(result, "cuCtxResetPersistingL2Cache");
  }

  [[nodiscard]] std::unique_ptr<SharedMemory> create_shared(std::size_t size_bytes) override {
    return create_cuda_shared(current(), size_bytes, stream_.get());
  }
  [[nodiscard]] std::unique_ptr<SharedMemory> open_shared(const std::string& handle,
                                                          std::size_t size_bytes) override {
    return open_cuda_shared(current(), handle, size_bytes);
  }

 private:
  // The context, current on this thread: every entry point begins here.
  const cuda::SharedContext& current() const {
    if (!context_) throw DriverError("the device has been released");
    context_->make_current();
    return context_;
  }

  void record(const cuda::UniqueEvent& event) {
    current();
    check(driver().event_record(event.get(), stream_.get()), "cuEventRecord");
  }

  [[nodiscard]] double calibrate_events();

  DeviceFacts facts_;
  cuda::SharedContext context_;
  cuda::UniqueStream stream_;
  cuda::UniqueEvent start_, end_;
  std::optional<CudaHold> hold_;
  cuda::UniqueMemory flushed_;
  std::size_t flushed_bytes_ = 0;
  double event_overhead_ns_ = 0;
  std::optional<CudaComparer> comparer_;  // the last: it uses all the others
};

std::unique_ptr<kernel_foundry::Graph> CudaDevice::capture(const std::function<void()>& enqueue) {
  Recording recording(current(), stream_.get());
  try {
    enqueue();
  } catch (const NativeError&) {
    return nullptr;  // the run without a graph says what it is
  }
  const cuda::UniqueGraph graph = recording.end();
  if (!graph) return nullptr;
  cuda::GraphExec exec = nullptr;
  if (driver().graph_instantiate(&exec, graph.get(), 0) != cuda::success) return nullptr;
  return std::make_unique<CudaGraph>(context_, cuda::UniqueGraphExec(context_, exec),
                                     stream_.get());
}

// What a pair of marks shows with nothing in between, the median of several. They are queued before
// the first one runs: else the host's pace would be measured.
double CudaDevice::calibrate_events() {
  constexpr std::size_t pairs = 21;
  constexpr std::size_t covering_bytes = std::size_t{64} << 20;
  std::vector<double> spans;
  for (std::size_t i = 0; i < pairs; ++i) {
    if (!hold()) flush(covering_bytes);
    mark_start();
    mark_end();
    wait();
    spans.push_back(marked_ns());
  }
  const auto middle = spans.begin() + pairs / 2;
  std::nth_element(spans.begin(), middle, spans.end());
  return *middle;
}

}  // namespace

std::size_t cuda_device_count() {
  int count = 0;
  check(driver().device_get_count(&count), "cuDeviceGetCount");
  return static_cast<std::size_t>(count);
}

std::shared_ptr<Device> open_cuda_device(std::size_t index) {
  return std::make_shared<CudaDevice>(cuda::PrimaryContext::retain(index));
}

}  // namespace kernel_foundry
