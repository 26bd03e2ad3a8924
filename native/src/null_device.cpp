#include "null_device.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>

#include "error.hpp"
#include "host_device.hpp"

namespace kernel_foundry {
namespace {

constexpr const char* null_architecture = "null";
constexpr const char* null_version = "1";
constexpr std::string_view object_header = "null object\n";

class NullProgram final : public Program {
 public:
  NullProgram(std::vector<std::string> names, std::chrono::nanoseconds duration)
      : names_(std::move(names)), duration_(duration) {}
  [[nodiscard]] const std::vector<std::string>& kernel_names() const noexcept override {
    return names_;
  }
  // Least time of a launch.
  [[nodiscard]] std::chrono::nanoseconds duration() const noexcept { return duration_; }

 private:
  std::vector<std::string> names_;
  std::chrono::nanoseconds duration_;
};

// 20 to 220 µs that depend on the source alone. Source: FNV-1a.
std::chrono::nanoseconds duration_of(const std::string& code) {
  std::uint64_t hash = 14695981039346656037ull;
  for (const char c : code) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return std::chrono::microseconds(20 + hash % 200);
}

const float* input_of(const Launch& launch, const std::vector<std::uintptr_t>& addresses,
                      std::size_t position) {
  const auto* argument = std::get_if<BufferArgument>(&launch.arguments.at(position));
  if (argument == nullptr) throw LaunchError("the null kernels take (in, out, count)");
  return reinterpret_cast<const float*>(addresses.at(argument->index));
}

void run_known_kernel(const Launch& launch, const std::vector<std::uintptr_t>& addresses) {
  const bool is_relu = launch.kernel == "null_relu";
  if (!is_relu && launch.kernel != "null_copy") return;
  if (launch.arguments.size() != 3) throw LaunchError("the null kernels take (in, out, count)");
  const float* in = input_of(launch, addresses, 0);
  float* out = const_cast<float*>(input_of(launch, addresses, 1));
  const auto* scalar = std::get_if<ScalarArgument>(&launch.arguments[2]);
  if (scalar == nullptr) throw LaunchError("the null kernels take (in, out, count)");
  const auto count =
      std::visit([](auto value) { return static_cast<std::size_t>(value); }, scalar->value);
  std::transform(in, in + count, out,
                 [is_relu](float x) { return is_relu ? std::max(x, 0.0f) : x; });
}

class NullCompiler final : public Compiler {
 public:
  [[nodiscard]] const std::string& architecture() const noexcept override { return architecture_; }
  [[nodiscard]] const std::string& version() const noexcept override { return version_; }

  [[nodiscard]] ObjectCode compile(const std::string& source, const std::vector<std::string>&,
                                   const std::vector<std::string>&) override {
    std::string code(object_header);
    code += source;
    return {std::move(code), "", "", 0};
  }

 private:
  std::string architecture_ = null_architecture;
  std::string version_ = null_version;
};

class NullDevice final : public HostDevice {
 public:
  NullDevice() {
    facts_.name = "null device";
    facts_.vendor = "Kernel Foundry";
    facts_.architecture = null_architecture;
    facts_.driver_version = std::string(null_version);
    facts_.compute_units = 1;
    facts_.sub_group_sizes = {1};
    facts_.max_block = 1024;
    facts_.shared_bytes = 32 << 10;
    facts_.memory_bytes = host_memory_bytes();
    facts_.cache_bytes = last_level_cache_bytes();
  }

  [[nodiscard]] const DeviceFacts& facts() const noexcept override { return facts_; }

  [[nodiscard]] std::shared_ptr<Program> load(const std::string& code,
                                              const std::vector<std::string>& kernels) override {
    if (!code.starts_with(object_header)) throw LoadError("no object code of the null device");
    return std::make_shared<NullProgram>(kernels, duration_of(code));
  }

  void enqueue(const Launch& launch, const std::vector<std::uintptr_t>& addresses) override {
    const auto& program = dynamic_cast<const NullProgram&>(*launch.program);
    const auto start = std::chrono::steady_clock::now();
    run_known_kernel(launch, addresses);
    std::this_thread::sleep_until(start + program.duration());
  }

  void wait() override {}
  [[nodiscard]] double span_ns() override { return std::numeric_limits<double>::quiet_NaN(); }
  void release() noexcept override {}

 private:
  DeviceFacts facts_;
};

void check_index(std::size_t index) {
  if (index < null_device_count()) return;
  throw DriverUnavailableError("null device " + std::to_string(index) + " of " +
                               std::to_string(null_device_count()));
}

}  // namespace

std::shared_ptr<Device> open_null_device(std::size_t index) {
  check_index(index);
  return std::make_shared<NullDevice>();
}

std::shared_ptr<Compiler> open_null_compiler(std::size_t index, const std::string& architecture) {
  check_index(index);
  if (!architecture.empty() && architecture != null_architecture) {
    throw std::invalid_argument("the null compiler builds for \"null\", not \"" + architecture +
                                "\"");
  }
  return std::make_shared<NullCompiler>();
}

std::size_t null_device_count() {
  const char* count = std::getenv("KERNEL_FOUNDRY_NULL_DEVICES");
  return count == nullptr ? 1 : std::strtoul(count, nullptr, 10);
}

}  // namespace kernel_foundry
