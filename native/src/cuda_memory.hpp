// Memory of a CUDA device: private, or opened by other processes through its handle.
#pragma once

#include <memory>
#include <string>

#include "cuda_context.hpp"
#include "device.hpp"

namespace kernel_foundry {

// All throw DriverError; the context must be current.
[[nodiscard]] std::unique_ptr<Buffer> allocate_cuda(const cuda::SharedContext& context,
                                                    std::size_t size_bytes);
// Zeros; complete when it returns.
[[nodiscard]] std::unique_ptr<SharedMemory>
create_cuda_shared(const cuda::SharedContext& context, std::size_t size_bytes, cuda::Stream stream);
[[nodiscard]] std::unique_ptr<SharedMemory> open_cuda_shared(const cuda::SharedContext& context,
                                                             const std::string& handle,
                                                             std::size_t size_bytes);

}  // namespace kernel_foundry
