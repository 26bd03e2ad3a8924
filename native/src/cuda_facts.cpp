#include "cuda_facts.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>

#include "cuda_context.hpp"

namespace kernel_foundry {
namespace {

// The kernel module's version, such as "580.82.07"; empty where it is not to be read.
std::string kernel_module_version() {
  std::ifstream file("/proc/driver/nvidia/version");
  std::string line;
  if (!std::getline(file, line)) return "";
  std::istringstream words(line.substr(std::min(line.find("Module"), line.size())));
  for (std::string word; words >> word;) {
    if (word.find_first_not_of("0123456789.") == word.npos) return word;
  }
  return "";
}

std::string driver_version() {
  const int version = cuda::driver().version;
  const std::string api =
      "CUDA " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
  const std::string module = kernel_module_version();
  return module.empty() ? api : module + " (" + api + ")";
}

std::string name_of(cuda::Ordinal device) {
  std::array<char, 256> name{};
  cuda::check(
      cuda::driver().device_get_name(name.data(), static_cast<int>(name.size()) - 1, device),
      "cuDeviceGetName");
  return name.data();
}

std::string uuid_of(cuda::Ordinal device) {
  cuda::Uuid uuid{};
  if (cuda::driver().device_get_uuid == nullptr ||
      cuda::driver().device_get_uuid(&uuid, device) != cuda::success) {
    return "";
  }
  constexpr const char* digits = "0123456789abcdef";
  std::string text = "GPU";
  for (std::size_t i = 0; i < sizeof(uuid.bytes); ++i) {
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    const auto byte = static_cast<unsigned char>(uuid.bytes[i]);
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

}  // namespace

DeviceFacts cuda_facts(cuda::Ordinal device) {
  const auto size = [device](cuda::DeviceAttribute attribute) {
    return static_cast<std::size_t>(cuda::attribute_of(device, attribute));
  };
  DeviceFacts facts;
  facts.name = name_of(device);
  facts.vendor = "NVIDIA";
  facts.architecture = cuda::architecture_of(device);
  facts.driver_version = driver_version();
  facts.compute_units = size(cuda::device_multiprocessor_count);
  facts.sub_group_sizes = {32};
  facts.max_block = size(cuda::device_max_threads_per_block);
  facts.shared_bytes = size(cuda::device_max_shared_memory_per_block_optin);
  cuda::check(cuda::driver().device_total_mem(&facts.memory_bytes, device), "cuDeviceTotalMem");
  facts.cache_bytes = size(cuda::device_l2_cache_size);
  facts.unit_limits = UnitLimits{size(cuda::device_max_registers_per_multiprocessor),
                                 size(cuda::device_max_shared_memory_per_multiprocessor),
                                 size(cuda::device_max_threads_per_multiprocessor),
                                 size(cuda::device_max_blocks_per_multiprocessor)};
  facts.uuid = uuid_of(device);
  return facts;
}

}  // namespace kernel_foundry
