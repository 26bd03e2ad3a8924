// The seam between device kinds: a back end implements Device and Program, nothing else.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace kernel_foundry {

struct DeviceFacts {
  std::string name;
  std::string vendor;
  std::string architecture;
  std::string driver_version;
  std::string compiler_version;
  std::size_t compute_units = 0;
  std::vector<std::size_t> sub_group_sizes;
  std::size_t max_block = 0;
  std::size_t shared_bytes = 0;
  std::size_t memory_bytes = 0;
  std::size_t cache_bytes = 0;  // last level
};

// Object code that another process can load, and what the compiler said.
struct ObjectCode {
  std::string code;
  std::string log;
  double build_ns = 0;
};

// Kernels loaded on a device, which outlives them.
class Program {
 public:
  virtual ~Program() = default;
  [[nodiscard]] virtual const std::vector<std::string>& kernel_names() const noexcept = 0;
};

// Memory of the device; on the CPU its address is a plain pointer.
class Buffer {
 public:
  virtual ~Buffer() = default;
  [[nodiscard]] virtual std::uintptr_t address() const noexcept = 0;
  [[nodiscard]] virtual std::size_t size_bytes() const noexcept = 0;
};

struct BufferArgument {
  std::size_t index;  // into the addresses that a set binds
  std::size_t offset_bytes;
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

class Device {
 public:
  virtual ~Device() = default;
  [[nodiscard]] virtual const DeviceFacts& facts() const noexcept = 0;

  // Throws CompileError with the log.
  [[nodiscard]] virtual ObjectCode compile(const std::string& source,
                                           const std::vector<std::string>& options,
                                           const std::vector<std::string>& kernels) = 0;
  // Throws LoadError.
  [[nodiscard]] virtual std::shared_ptr<Program> load(const std::string& code,
                                                      const std::vector<std::string>& kernels) = 0;
  [[nodiscard]] virtual std::unique_ptr<Buffer> allocate(std::size_t size_bytes) = 0;

  // Queue work in order; both throw LaunchError.
  virtual void enqueue(const Launch& launch, const std::vector<std::uintptr_t>& addresses) = 0;
  virtual void clear(std::uintptr_t address, std::size_t size_bytes) = 0;
  virtual void wait() = 0;  // throws LaunchError for what failed on the way
  // From the start of the first to the end of the last kernel since the wait before; else NaN.
  [[nodiscard]] virtual double span_ns() = 0;

  virtual void fill(std::uintptr_t address, std::size_t size_bytes, unsigned char byte) = 0;
  virtual void copy(std::uintptr_t to, std::uintptr_t from, std::size_t size_bytes) = 0;
  // Displace measured data from every cache by touching `size_bytes` of other data.
  virtual void flush(std::size_t size_bytes) = 0;

  // Drop queue and context; nothing else may be called afterwards.
  virtual void release() noexcept = 0;
};

}  // namespace kernel_foundry
