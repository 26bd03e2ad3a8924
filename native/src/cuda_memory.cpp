#include "cuda_memory.hpp"

#include <cstring>
#include <utility>

#include "error.hpp"

namespace kernel_foundry {
namespace {

using cuda::check;
using cuda::driver;

class CudaBuffer final : public Buffer {
 public:
  CudaBuffer(cuda::UniqueMemory memory, std::size_t size_bytes)
      : memory_(std::move(memory)), size_bytes_(size_bytes) {}
  [[nodiscard]] std::uintptr_t address() const noexcept override { return memory_.get(); }
  [[nodiscard]] std::size_t size_bytes() const noexcept override { return size_bytes_; }

 private:
  cuda::UniqueMemory memory_;
  std::size_t size_bytes_;
};

// `Owned` is memory of this process or a mapping of another's.
template <typename Owned>
class CudaShared final : public SharedMemory {
 public:
  CudaShared(Owned memory, std::string handle, std::size_t size_bytes)
      : memory_(std::move(memory)), handle_(std::move(handle)), size_bytes_(size_bytes) {}
  [[nodiscard]] std::uintptr_t address() const noexcept override { return memory_.get(); }
  [[nodiscard]] std::size_t size_bytes() const noexcept override { return size_bytes_; }
  [[nodiscard]] const std::string& handle() const noexcept override { return handle_; }
  void close() noexcept override { memory_.reset(); }

 private:
  Owned memory_;
  std::string handle_;
  std::size_t size_bytes_;
};

}  // namespace

std::unique_ptr<Buffer> allocate_cuda(const cuda::SharedContext& context, std::size_t size_bytes) {
  return std::make_unique<CudaBuffer>(cuda::allocate_whole(context, size_bytes), size_bytes);
}

std::unique_ptr<SharedMemory> create_cuda_shared(const cuda::SharedContext& context,
                                                 std::size_t size_bytes, cuda::Stream stream) {
  const std::size_t whole = cuda::whole_bytes(size_bytes);
  cuda::UniqueMemory memory = cuda::allocate_whole(context, size_bytes);
  // What this process had there before is not for the other one's eyes.
  check(driver().memset_d8_async(memory.get(), 0, whole, stream), "cuMemsetD8Async");
  check(driver().stream_synchronize(stream), "cuStreamSynchronize");
  cuda::IpcHandle handle{};
  check(driver().ipc_get_mem_handle(&handle, memory.get()), "cuIpcGetMemHandle");
  return std::make_unique<CudaShared<cuda::UniqueMemory>>(
      std::move(memory), std::string(handle.bytes, sizeof(handle.bytes)), size_bytes);
}

std::unique_ptr<SharedMemory> open_cuda_shared(const cuda::SharedContext& context,
                                               const std::string& handle, std::size_t size_bytes) {
  cuda::IpcHandle opened{};
  if (handle.size() != sizeof(opened.bytes)) {
    throw DriverError("a handle of shared memory has " + std::to_string(sizeof(opened.bytes)) +
                      " bytes, not " + std::to_string(handle.size()));
  }
  std::memcpy(opened.bytes, handle.data(), handle.size());
  cuda::Address address = 0;
  check(driver().ipc_open_mem_handle(&address, opened, cuda::ipc_lazy_enable_peer_access),
        "cuIpcOpenMemHandle");
  cuda::UniqueMapping mapping(context, address);
  cuda::Address base = 0;
  std::size_t whole = 0;
  // Where the driver does not tell, an access beyond the end is found when it is made.
  const bool is_known = driver().mem_get_address_range(&base, &whole, address) == cuda::success;
  if (is_known && base + whole - address < size_bytes) {
    throw DriverError("the shared buffer has " + std::to_string(base + whole - address) +
                      " bytes, expected " + std::to_string(size_bytes));
  }
  return std::make_unique<CudaShared<cuda::UniqueMapping>>(std::move(mapping), handle, size_bytes);
}

}  // namespace kernel_foundry
