// The interface that each kind of device implements: Compiler, Device and Program, and the small
// classes that these return.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "clocks.hpp"
#include "compare.hpp"
#include "error.hpp"
#include "redraw.hpp"

namespace kernel_foundry {

// Limits of one compute unit, for all work-groups on it.
struct UnitLimits {
  std::size_t registers = 0;
  std::size_t shared_bytes = 0;
  std::size_t work_items = 0;
  std::size_t groups = 0;
};

struct DeviceFacts {
  std::string name;
  std::string vendor;
  std::string architecture;
  std::string driver_version;
  std::size_t compute_units = 0;
  std::vector<std::size_t> sub_group_sizes;
  std::size_t max_block = 0;
  std::size_t shared_bytes = 0;
  std::size_t memory_bytes = 0;
  std::size_t cache_bytes = 0;  // last level
  std::optional<UnitLimits> unit_limits;
  std::string uuid;  // empty if the device has none
};

// Object code that another process can load, and the compiler's log.
struct ObjectCode {
  std::string code;
  std::string assembly;  // only read; empty if the object code itself is read
  std::string log;
  double build_ns = 0;
};

// Compiles source text to object code. Needs a device only if the kind's compiler does.
class Compiler {
 public:
  virtual ~Compiler() = default;
  [[nodiscard]] virtual const std::string& architecture() const noexcept = 0;
  // Changes whenever the same source may build to other code.
  [[nodiscard]] virtual const std::string& version() const noexcept = 0;
  // Throws CompileError with the log.
  [[nodiscard]] virtual ObjectCode compile(const std::string& source,
                                           const std::vector<std::string>& options,
                                           const std::vector<std::string>& kernels) = 0;
  // Drops state that must be gone before the driver is unloaded at the end of the process.
  virtual void release() noexcept {}
};

// Resources of a loaded kernel, as the driver reports them.
struct KernelResources {
  std::string name;
  std::size_t registers = 0;     // of a work-item
  std::size_t shared_bytes = 0;  // static
  std::size_t local_bytes = 0;   // of a work-item: spills and arrays
  std::size_t max_block = 0;
};

// Kernels loaded on a device, which outlives them.
class Program {
 public:
  virtual ~Program() = default;
  [[nodiscard]] virtual const std::vector<std::string>& kernel_names() const noexcept = 0;
  // Empty if the driver does not report them.
  [[nodiscard]] virtual std::vector<KernelResources> resources() const { return {}; }
};

// Memory of the device; on the CPU its address is a plain pointer.
class Buffer {
 public:
  virtual ~Buffer() = default;
  [[nodiscard]] virtual std::uintptr_t address() const noexcept = 0;
  [[nodiscard]] virtual std::size_t size_bytes() const noexcept = 0;
};

// Device memory that another process can open by its handle.
class SharedMemory {
 public:
  virtual ~SharedMemory() = default;
  [[nodiscard]] virtual std::uintptr_t address() const noexcept = 0;
  [[nodiscard]] virtual std::size_t size_bytes() const noexcept = 0;
  [[nodiscard]] virtual const std::string& handle() const noexcept = 0;  // bytes
  virtual void close() noexcept = 0;                                     // idempotent
};

// Queued work that was recorded once and is queued again as a whole.
class Graph {
 public:
  virtual ~Graph() = default;
  virtual void launch() = 0;  // throws LaunchError
};

struct BufferArgument {
  std::size_t index;  // into the addresses that a set binds
};

struct ScalarArgument {
  std::string type;  // "int32", "float32", …
  std::variant<std::int64_t, std::uint64_t, double> value;
};

struct LocalArgument {
  std::size_t element_bytes;
  std::size_t count;
};

using Argument = std::variant<BufferArgument, ScalarArgument, LocalArgument>;

struct Launch {
  std::shared_ptr<Program> program;
  std::string kernel;
  std::array<std::size_t, 3> grid;   // work-groups, x first
  std::array<std::size_t, 3> block;  // work-items of a group, x first
  int dimensions = 1;
  std::size_t shared_bytes = 0;
  bool cooperative = false;
  std::vector<Argument> arguments;
};

// A range filled with one byte value.
struct ByteRange {
  std::uintptr_t address;
  std::size_t size_bytes;
  unsigned char byte;
};

// A range hidden while `prepare` runs.
struct CoveredRange {
  std::uintptr_t address;  // on the host alone in its pages
  std::size_t size_bytes;
  bool is_read_only;  // for kernels, while it is shown
  std::string name;
};

// Hides ranges from kernels between `hide` and `show`; their contents stay.
class Cover {
 public:
  virtual ~Cover() = default;
  virtual void hide() = 0;  // throws LaunchError or DriverError
  virtual void show() = 0;  // does nothing if they are shown
};

class Device {
 public:
  virtual ~Device() = default;
  [[nodiscard]] virtual const DeviceFacts& facts() const noexcept = 0;

  // Throws LoadError.
  [[nodiscard]] virtual std::shared_ptr<Program> load(const std::string& code,
                                                      const std::vector<std::string>& kernels) = 0;
  [[nodiscard]] virtual std::unique_ptr<Buffer> allocate(std::size_t size_bytes) = 0;

  // These queue work in order and throw LaunchError. The work may still run when they return, also
  // on a CPU; `wait` waits for it.
  virtual void enqueue(const Launch& launch, const std::vector<std::uintptr_t>& addresses) = 0;
  virtual void clear(std::uintptr_t address, std::size_t size_bytes) = 0;
  virtual void fill(std::uintptr_t address, std::size_t size_bytes, unsigned char byte) = 0;
  virtual void copy(std::uintptr_t to, std::uintptr_t from, std::size_t size_bytes) = 0;
  // Changes the values of a tensor in place.
  virtual void redraw(std::uintptr_t address, const RedrawPass& pass) = 0;
  // Empties every cache of measured data by touching `size_bytes` of other data.
  virtual void flush(std::size_t size_bytes) = 0;
  virtual void wait() = 0;  // throws LaunchError if queued work failed
  // Time from the start of the first to the end of the last kernel since the last wait; NaN if it
  // is not known.
  [[nodiscard]] virtual double span_ns() = 0;

  // The functions of compare.hpp on memory of the device; they wait.
  [[nodiscard]] virtual Comparison compare(std::uintptr_t actual, std::uintptr_t expected,
                                           const CompareOptions& options) = 0;
  [[nodiscard]] virtual bool same_bytes(std::uintptr_t a, std::uintptr_t b,
                                        std::size_t size_bytes) = 0;

  // Fills every range, many of them in one step.
  virtual void fill_all(const std::vector<ByteRange>& ranges) {
    for (const ByteRange& range : ranges) fill(range.address, range.size_bytes, range.byte);
  }
  // Returns the index of a range that has another byte than its own; waits.
  [[nodiscard]] virtual std::optional<std::size_t>
  find_other(const std::vector<ByteRange>& ranges) = 0;
  // The ranges are shown at first. An access to hidden host memory is reported as a trespass.
  [[nodiscard]] virtual std::unique_ptr<Cover> cover(std::vector<CoveredRange> ranges) = 0;
  // `allocate` gives whole units of this size, from the beginning of one: kernels can write to all
  // of it.
  [[nodiscard]] virtual std::size_t unit_bytes() const noexcept = 0;

  // Drops queue and context; nothing else may be called afterwards.
  virtual void release() noexcept = 0;

  // From here on: additions of a device with its own memory and stream. The defaults are those
  // of a device that works in host memory and is timed by the host's clock.

  [[nodiscard]] virtual bool is_host_memory() const noexcept { return true; }
  // The driver's stream, for libraries that enqueue their own work.
  [[nodiscard]] virtual std::uintptr_t stream() const noexcept { return 0; }

  // Whether `marked_ns` is the figure that counts, rather than the host's clock.
  [[nodiscard]] virtual bool times_by_events() const noexcept { return false; }
  // The overhead of a pair of marks, in nanoseconds.
  [[nodiscard]] virtual double event_overhead_ns() { return 0; }
  virtual void mark_start() {}
  virtual void mark_end() {}
  // The time between the two marks by the device's events; only after `wait`.
  [[nodiscard]] virtual double marked_ns() { return std::numeric_limits<double>::quiet_NaN(); }
  // Holds back all work that is enqueued until `release_hold`; returns false if the device cannot.
  // In between nothing that waits may be called, and no more enqueued than the driver's queue
  // takes.
  [[nodiscard]] virtual bool hold() { return false; }
  virtual void release_hold() {}
  // Records the work that `enqueue` enqueues instead of running it; null on devices without graphs.
  [[nodiscard]] virtual std::unique_ptr<Graph> capture(const std::function<void()>& enqueue) {
    (void)enqueue;
    return nullptr;
  }
  // Null if the device does not report them.
  [[nodiscard]] virtual Clocks* clocks() noexcept { return nullptr; }
  // Overwrites on-chip memory and dead stacks, where the next kernel could find data of earlier
  // ones; does nothing on a device without them.
  virtual void scrub() {}
  // Releases cache lines that a kernel asked to keep.
  virtual void reset_persisting_cache() {}

  // Memory that other processes open by its handle; zeros at first. Throws DriverError.
  [[nodiscard]] virtual std::unique_ptr<SharedMemory> create_shared(std::size_t size_bytes) {
    (void)size_bytes;
    throw DriverError("memory of this device is shared by descriptor");
  }
  [[nodiscard]] virtual std::unique_ptr<SharedMemory> open_shared(const std::string& handle,
                                                                  std::size_t size_bytes) {
    (void)handle, (void)size_bytes;
    throw DriverError("memory of this device is shared by descriptor");
  }
};

}  // namespace kernel_foundry
