#include "sycl_find.hpp"

#include <vector>

#include "sycl_device.hpp"

namespace kernel_foundry {
namespace {

std::vector<sycl::device> usable_devices() {
  std::vector<sycl::device> usable;
  for (const auto kind : {sycl::info::device_type::cpu, sycl::info::device_type::gpu}) {
    for (const sycl::device& device : sycl::device::get_devices(kind)) {
      // Buffers are shared with the judge as plain host memory.
      if (device.get_backend() == sycl::backend::opencl &&
          device.has(sycl::aspect::usm_system_allocations)) {
        usable.push_back(device);
      }
    }
  }
  return usable;
}

}  // namespace

sycl::device usable_device(std::size_t index) {
  const auto devices = usable_devices();
  if (index >= devices.size()) {
    throw DriverUnavailableError("SYCL device " + std::to_string(index) + " of " +
                                 std::to_string(devices.size()) + " usable ones");
  }
  return devices[index];
}

std::string architecture_of(const sycl::device& device) {
  return device.is_cpu() ? "spir64-cpu" : "spir64-gpu";
}

std::size_t sycl_device_count() {
  return with_driver([] { return usable_devices().size(); });
}

}  // namespace kernel_foundry
