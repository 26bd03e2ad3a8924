#include "cuda_device.hpp"

#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "cuda_compare.hpp"
#include "cuda_compiler.hpp"
#include "cuda_context.hpp"
#include "cuda_event_overhead.hpp"
#include "cuda_facts.hpp"
#include "cuda_flush.hpp"
#include "cuda_graph.hpp"
#include "cuda_hold.hpp"
#include "cuda_memory.hpp"
#include "cuda_program.hpp"
#include "cuda_ranges.hpp"
#include "cuda_redraw.hpp"
#include "cuda_scrub.hpp"
#include "error.hpp"
#include "nvml.hpp"

namespace kernel_foundry {
namespace {

using cuda::check;
using cuda::driver;

// Hides behind random bits of a key that only the host knows, another one each time.
class Mask final : public Cover {
 public:
  Mask(CudaRedraw& redraw, std::vector<CoveredRange> ranges, cuda::SharedContext context,
       cuda::Stream stream)
      : redraw_(redraw), ranges_(std::move(ranges)), context_(std::move(context)), stream_(stream) {
  }

  void hide() override {
    if (is_hidden_) return;
    key_ = std::uint64_t{random_()} << 32 | random_();
    enqueue();
    is_hidden_ = true;
  }
  void show() override {
    if (!is_hidden_) return;
    is_hidden_ = false;
    enqueue();
  }

 private:
  void enqueue() {
    context_->make_current();
    redraw_.mask(ranges_, key_, stream_);
  }

  CudaRedraw& redraw_;
  std::vector<CoveredRange> ranges_;
  cuda::SharedContext context_;
  cuda::Stream stream_;
  std::random_device random_;
  std::uint64_t key_ = 0;
  bool is_hidden_ = false;
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
    flush_.emplace(context_);
    scrub_.emplace(context_);
    redraw_.emplace(context_);
    ranges_.emplace(context_);
    overhead_.emplace(context_);
    clocks_ = open_nvml_clocks(facts_.uuid);
    comparer_.emplace(
        *this,
        [this](const std::string& source, const std::vector<std::string>& kernels) {
          return open_cuda_compiler(0, facts_.architecture)->compile(source, {}, kernels);
        },
        [this](void* to, std::uintptr_t from, std::size_t size_bytes) {
          copy(reinterpret_cast<std::uintptr_t>(to), from, size_bytes);
          wait();
        });
  }

  ~CudaDevice() override { release(); }

  [[nodiscard]] const DeviceFacts& facts() const noexcept override { return facts_; }

  [[nodiscard]] std::shared_ptr<Program> load(const std::string& code,
                                              const std::vector<std::string>& kernels) override {
    auto program = CudaProgram::load(current(), code, kernels);
    for (const KernelResources& kernel : program->resources()) {
      scrub_->cover_local(kernel.local_bytes);
    }
    return program;
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

  void redraw(std::uintptr_t address, const RedrawPass& pass) override {
    current();
    redraw_->enqueue(address, pass, stream_.get());
  }

  [[nodiscard]] std::unique_ptr<Cover> cover(std::vector<CoveredRange> ranges) override {
    return std::make_unique<Mask>(*redraw_, std::move(ranges), current(), stream_.get());
  }

  void flush(std::size_t size_bytes) override {
    current();
    flush_->enqueue(size_bytes, stream_.get());
  }

  void scrub() override {
    current();
    scrub_->enqueue(stream_.get());
  }

  void wait() override {
    current();
    hold_->release();  // or it would wait for itself
    check(driver().stream_synchronize(stream_.get()), "cuStreamSynchronize");
    flush_->check_unwritten();
  }

  void fill_all(const std::vector<ByteRange>& ranges) override {
    current();
    ranges_->fill(ranges, stream_.get());
  }

  [[nodiscard]] std::optional<std::size_t>
  find_other(const std::vector<ByteRange>& ranges) override {
    current();
    return ranges_->find_other(ranges, stream_.get());
  }

  [[nodiscard]] std::size_t unit_bytes() const noexcept override {
    return cuda::allocation_unit_bytes;
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
    overhead_.reset();
    redraw_.reset();
    ranges_.reset();
    scrub_.reset();
    flush_.reset();
    clocks_.reset();
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
  [[nodiscard]] double event_overhead_ns() override {
    current();
    return overhead_->nanoseconds(*this);
  }

  [[nodiscard]] Clocks* clocks() noexcept override { return clocks_.get(); }

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

  [[nodiscard]] std::unique_ptr<Graph> capture(const std::function<void()>& enqueue) override {
    return capture_cuda(current(), stream_.get(), enqueue);
  }

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

  DeviceFacts facts_;
  cuda::SharedContext context_;
  cuda::UniqueStream stream_;
  cuda::UniqueEvent start_, end_;
  std::optional<CudaHold> hold_;
  std::optional<CudaFlush> flush_;
  std::optional<CudaScrub> scrub_;
  std::optional<CudaRedraw> redraw_;
  std::optional<CudaRanges> ranges_;
  std::optional<CudaEventOverhead> overhead_;
  std::unique_ptr<Clocks> clocks_;
  std::optional<CudaComparer> comparer_;  // the last: it uses all the others
};

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
