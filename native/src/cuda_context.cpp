#include "cuda_context.hpp"

#include <algorithm>
#include <type_traits>

namespace kernel_foundry::cuda {

static_assert(!std::is_copy_constructible_v<UniqueMemory> &&
              std::is_nothrow_move_constructible_v<UniqueMemory> &&
              std::is_nothrow_move_assignable_v<UniqueMemory> &&
              std::is_nothrow_destructible_v<UniqueMemory>);

SharedContext PrimaryContext::retain(std::size_t index) {
  const Ordinal device = ordinal_of(index);
  Context context = nullptr;
  if (const Result result = driver().primary_ctx_retain(&context, device); result != success) {
    throw DriverUnavailableError(describe(result, "cuDevicePrimaryCtxRetain"));
  }
  return SharedContext(new PrimaryContext(device, context));
}

UniqueStream create_stream(const SharedContext& context) {
  Stream stream = nullptr;
  check(driver().stream_create(&stream, stream_non_blocking), "cuStreamCreate");
  return {context, stream};
}

UniqueEvent create_event(const SharedContext& context) {
  Event event = nullptr;
  check(driver().event_create(&event, event_default), "cuEventCreate");
  return {context, event};
}

UniqueMemory allocate(const SharedContext& context, std::size_t size_bytes) {
  Address address = 0;
  const Result result = driver().mem_alloc(&address, std::max<std::size_t>(size_bytes, 1));
  if (result == error_out_of_memory) {
    throw OutOfMemoryError("cannot allocate " + std::to_string(size_bytes) +
                           " bytes: " + describe(result, "cuMemAlloc"));
  }
  check(result, "cuMemAlloc");
  return {context, address};
}

UniqueMemory allocate_whole(const SharedContext& context, std::size_t size_bytes) {
  return allocate(context, whole_bytes(size_bytes));
}

int attribute_of(Ordinal device, DeviceAttribute attribute) {
  int value = 0;
  check(driver().device_get_attribute(&value, attribute, device), "cuDeviceGetAttribute");
  return value;
}

Ordinal ordinal_of(std::size_t index) {
  int count = 0;
  check(driver().device_get_count(&count), "cuDeviceGetCount");
  if (index >= static_cast<std::size_t>(count)) {
    throw DriverUnavailableError("CUDA device " + std::to_string(index) + " of " +
                                 std::to_string(count));
  }
  Ordinal device = 0;
  check(driver().device_get(&device, static_cast<int>(index)), "cuDeviceGet");
  return device;
}

std::string architecture_of(Ordinal device) {
  return "sm_" + std::to_string(attribute_of(device, device_compute_capability_major)) +
         std::to_string(attribute_of(device, device_compute_capability_minor));
}

}  // namespace kernel_foundry::cuda
