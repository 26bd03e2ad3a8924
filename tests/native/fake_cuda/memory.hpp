// Memory of the fake device: pages that another process can open by a handle.
#pragma once

#include <cstddef>

namespace fake_cuda {

using Result = int;

enum : Result {
  success = 0,
  error_invalid_value = 1,
  error_out_of_memory = 2,
  error_no_device = 100,
  error_invalid_image = 200,
  error_invalid_context = 201,
  error_not_found = 500,
  error_illegal_address = 700,
};

struct IpcHandle {
  char bytes[64];
};

// At most `total` bytes at a time.
Result allocate(unsigned long long* address, std::size_t bytes, std::size_t total);
// Gives back what was allocated or opened.
Result release(unsigned long long address);
Result find_range(unsigned long long* base, std::size_t* bytes, unsigned long long address);
Result share(IpcHandle* handle, unsigned long long address);
// As the driver does, refuses to open memory in the process that allocated it.
Result open_shared(unsigned long long* address, const IpcHandle& handle);

}  // namespace fake_cuda
