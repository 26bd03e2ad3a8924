#include "cuda_driver.hpp"

#include <type_traits>

#include "dynamic_library.hpp"

namespace kernel_foundry::cuda {
namespace {

Driver load() {
  // The last two are where containers and Windows' Linux guests have it.
  const DynamicLibrary library = DynamicLibrary::open(
      library_names("KERNEL_FOUNDRY_CUDA_DRIVER",
                    {"libcuda.so.1", "libcuda.so", "/usr/local/nvidia/lib64/libcuda.so.1",
                     "/usr/lib/wsl/lib/libcuda.so.1"}));
  Driver loaded;
#define KERNEL_FOUNDRY_REQUIRE(member, symbol, parameters)                                         \
  loaded.member = reinterpret_cast<decltype(loaded.member)>(library.require(#symbol));
#define KERNEL_FOUNDRY_FIND(member, symbol, parameters)                                            \
  loaded.member = reinterpret_cast<decltype(loaded.member)>(library.find(#symbol));
  KERNEL_FOUNDRY_CUDA_REQUIRED(KERNEL_FOUNDRY_REQUIRE)
  KERNEL_FOUNDRY_CUDA_OPTIONAL(KERNEL_FOUNDRY_FIND)
#undef KERNEL_FOUNDRY_REQUIRE
#undef KERNEL_FOUNDRY_FIND
  if (loaded.event_elapsed_time == nullptr && loaded.event_elapsed_time_v2 == nullptr) {
    loaded.event_elapsed_time = reinterpret_cast<decltype(loaded.event_elapsed_time)>(
        library.require("cuEventElapsedTime"));
  }
  if (const Result result = loaded.init(0); result != success) {
    const char* name = "unknown";
    const char* text = "";
    loaded.get_error_name(result, &name);
    loaded.get_error_string(result, &text);
    throw DriverUnavailableError(library.name() + ": cuInit: " + name + " (" +
                                 std::to_string(result) + "): " + text);
  }
  loaded.driver_get_version(&loaded.version);
  return loaded;
}

bool is_sticky(Result result) noexcept {
  return is_launch_fault(result) && result != error_launch_out_of_resources &&
         result != error_cooperative_launch_too_large;
}

LaunchFault fault_of(Result result) noexcept {
  switch (result) {
  case error_illegal_address:
  case error_misaligned_address:
  case error_invalid_address_space:
  case error_invalid_pc: return LaunchFault::illegal_access;
  case error_out_of_memory:
  case error_launch_out_of_resources:
  case error_cooperative_launch_too_large: return LaunchFault::resources;
  case error_invalid_value:
  case error_invalid_cluster_size: return LaunchFault::invalid;
  default: return LaunchFault::other;
  }
}

}  // namespace

const Driver& driver() {
  static const Driver loaded = load();
  return loaded;
}

std::string describe(Result result, const std::string& call) {
  const char* name = nullptr;
  const char* text = nullptr;
  driver().get_error_name(result, &name);
  driver().get_error_string(result, &text);
  std::string described = call + ": " + (name != nullptr ? name : "unknown error") + " (" +
                          std::to_string(result) + ")";
  if (text != nullptr) described += std::string(": ") + text;
  if (is_sticky(result)) described += "; nothing else can run in this process";
  return described;
}

bool is_launch_fault(Result result) noexcept {
  switch (result) {
  case error_illegal_address:
  case error_launch_out_of_resources:
  case error_launch_timeout:
  case error_assert:
  case error_hardware_stack_error:
  case error_illegal_instruction:
  case error_misaligned_address:
  case error_invalid_address_space:
  case error_invalid_pc:
  case error_launch_failed:
  case error_cooperative_launch_too_large:
  case error_tensor_memory_leak: return true;
  default: return false;
  }
}

void check(Result result, const char* call) {
  if (result == success) return;
  if (is_launch_fault(result)) throw LaunchError(describe(result, call), fault_of(result));
  if (result == error_out_of_memory) throw OutOfMemoryError(describe(result, call));
  throw DriverError(describe(result, call));
}

void check_launch(Result result, const std::string& call) {
  if (result != success) throw LaunchError(describe(result, call), fault_of(result));
}

}  // namespace kernel_foundry::cuda
