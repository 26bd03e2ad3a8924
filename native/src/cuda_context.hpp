// A device's primary context, which every handle knows, and the handles.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "cuda_driver.hpp"

namespace kernel_foundry::cuda {

// What the driver allocates at once, aligned to itself; less is a part of some other allocation.
inline constexpr std::size_t allocation_unit_bytes = std::size_t{2} << 20;

class PrimaryContext {
 public:
  // Throws DriverUnavailableError when there is no device `index`. Until the process ends the
  // context is not given back: libraries that find it current use it without a hold of their own.
  static std::shared_ptr<const PrimaryContext> retain(std::size_t index);

  // The driver works on the calling thread's current context: to be called first wherever a thread
  // may come in.
  void make_current() const { check(driver().ctx_set_current(context_), "cuCtxSetCurrent"); }
  [[nodiscard]] bool make_current_noexcept() const noexcept {
    return driver().ctx_set_current(context_) == success;
  }
  [[nodiscard]] Ordinal device() const noexcept { return device_; }

 private:
  PrimaryContext(Ordinal device, Context context) : device_(device), context_(context) {}

  Ordinal device_;
  Context context_;
};

using SharedContext = std::shared_ptr<const PrimaryContext>;

// Owns one object of the driver; `destroy` is the function that ends it.
template <typename Object, Result (*Driver::*destroy)(Object)>
class UniqueHandle {
 public:
  UniqueHandle() = default;
  UniqueHandle(SharedContext context, Object object)
      : context_(std::move(context)), object_(object) {}
  ~UniqueHandle() { reset(); }
  UniqueHandle(UniqueHandle&& other) noexcept
      : context_(std::move(other.context_)), object_(std::exchange(other.object_, Object{})) {}
  UniqueHandle& operator=(UniqueHandle&& other) noexcept {
    if (this == &other) return *this;
    reset();
    context_ = std::move(other.context_);
    object_ = std::exchange(other.object_, Object{});
    return *this;
  }

  [[nodiscard]] Object get() const noexcept { return object_; }
  explicit operator bool() const noexcept { return object_ != Object{}; }

  // What the driver says is dropped: after a fault nothing can be given back any more.
  void reset() noexcept {
    if (object_ != Object{} && context_->make_current_noexcept()) (driver().*destroy)(object_);
    object_ = Object{};
    context_.reset();
  }

 private:
  SharedContext context_;
  Object object_{};
};

using UniqueModule = UniqueHandle<Module, &Driver::module_unload>;
using UniqueStream = UniqueHandle<Stream, &Driver::stream_destroy>;
using UniqueEvent = UniqueHandle<Event, &Driver::event_destroy>;
using UniqueGraph = UniqueHandle<Graph, &Driver::graph_destroy>;
using UniqueGraphExec = UniqueHandle<GraphExec, &Driver::graph_exec_destroy>;
using UniqueMemory = UniqueHandle<Address, &Driver::mem_free>;
using UniqueMapping = UniqueHandle<Address, &Driver::ipc_close_mem_handle>;
using UniqueHostMemory = UniqueHandle<void*, &Driver::mem_free_host>;

// All throw DriverError.
[[nodiscard]] UniqueStream create_stream(const SharedContext& context);
[[nodiscard]] UniqueEvent create_event(const SharedContext& context);
[[nodiscard]] UniqueMemory allocate(const SharedContext& context, std::size_t size_bytes);
// Memory that shares no unit of the driver's with anything else: every byte of it is known.
[[nodiscard]] UniqueMemory allocate_whole(const SharedContext& context, std::size_t size_bytes);
// What that takes: a handle opens whole units, and kernels can write to all of them.
[[nodiscard]] constexpr std::size_t whole_bytes(std::size_t size_bytes) {
  constexpr std::size_t unit = allocation_unit_bytes;
  return (size_bytes == 0 ? 1 : (size_bytes + unit - 1) / unit) * unit;
}

[[nodiscard]] int attribute_of(Ordinal device, DeviceAttribute attribute);
[[nodiscard]] Ordinal ordinal_of(std::size_t index);        // throws DriverUnavailableError
[[nodiscard]] std::string architecture_of(Ordinal device);  // such as "sm_90"

}  // namespace kernel_foundry::cuda
