#include "cuda_hold.hpp"

#include <atomic>
#include <cstring>

namespace kernel_foundry {

namespace {

constexpr std::size_t page_bytes = 4096;

}  // namespace

using cuda::check;
using cuda::driver;

CudaHold::CudaHold(const cuda::SharedContext& context) {
  if (driver().stream_wait_value32 == nullptr) return;
  void* memory = nullptr;
  check(driver().mem_host_alloc(&memory, page_bytes,
                                cuda::memhostalloc_portable | cuda::memhostalloc_devicemap),
        "cuMemHostAlloc");
  memory_ = cuda::UniqueHostMemory(context, memory);
  std::memset(memory, 0, page_bytes);
  check(driver().mem_host_get_device_pointer(&address_, memory, 0), "cuMemHostGetDevicePointer");
}

bool CudaHold::hold(cuda::Stream stream) {
  if (!memory_) return false;
  // Kernels can write here, so nothing of a call may be left.
  std::memset(static_cast<char*>(memory_.get()) + sizeof(std::uint32_t), 0,
              page_bytes - sizeof(std::uint32_t));
  const cuda::Result result =
      driver().stream_wait_value32(stream, address_, turn_ + 1, cuda::stream_wait_value_geq);
  if (cuda::is_launch_fault(result)) check(result, "cuStreamWaitValue32");
  if (result != cuda::success) {
    memory_.reset();  // this device cannot; no need to ask again
    return false;
  }
  ++turn_;
  return true;
}

void CudaHold::release() noexcept {
  if (!memory_) return;
  // The device compares by difference, so that the number may wrap around.
  std::atomic_ref(*static_cast<std::uint32_t*>(memory_.get()))
      .store(turn_, std::memory_order_release);
}

}  // namespace kernel_foundry
