#include "memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <numeric>

namespace fake_cuda {
namespace {

struct Block {
  std::size_t bytes;
  int descriptor;
};

std::mutex guard;
std::map<unsigned long long, Block> blocks;  // by address

// What a handle holds.
struct Shared {
  pid_t process;
  int descriptor;
  std::size_t bytes;
};

Result map_block(unsigned long long* address, std::size_t bytes, int descriptor) {
  // At a multiple of a unit, as the driver's are.
  constexpr std::size_t unit = std::size_t{2} << 20;
  void* room = mmap(nullptr, bytes + unit, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED) return close(descriptor), error_out_of_memory;
  const auto wanted = (reinterpret_cast<std::size_t>(room) + unit - 1) / unit * unit;
  munmap(room, bytes + unit);
  void* mapped = mmap(reinterpret_cast<void*>(wanted), bytes, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_FIXED_NOREPLACE, descriptor, 0);
  if (mapped == MAP_FAILED) return close(descriptor), error_out_of_memory;
  *address = reinterpret_cast<unsigned long long>(mapped);
  blocks[*address] = {bytes, descriptor};
  return success;
}

auto block_at(unsigned long long address) {
  auto after = blocks.upper_bound(address);
  if (after == blocks.begin()) return blocks.end();
  const auto found = std::prev(after);
  return address < found->first + found->second.bytes ? found : blocks.end();
}

}  // namespace

Result allocate(unsigned long long* address, std::size_t bytes, std::size_t total) {
  const std::lock_guard lock(guard);
  const std::size_t used =
      std::accumulate(blocks.begin(), blocks.end(), std::size_t{0},
                      [](std::size_t sum, const auto& block) { return sum + block.second.bytes; });
  if (bytes == 0) return error_invalid_value;
  if (bytes > total - used) return error_out_of_memory;
  const int descriptor = memfd_create("fake device memory", 0);
  if (descriptor < 0 || ftruncate(descriptor, static_cast<off_t>(bytes)) != 0) {
    return error_out_of_memory;
  }
  return map_block(address, bytes, descriptor);
}

Result release(unsigned long long address) {
  const std::lock_guard lock(guard);
  const auto found = blocks.find(address);
  if (found == blocks.end()) return error_invalid_value;
  munmap(reinterpret_cast<void*>(address), found->second.bytes);
  close(found->second.descriptor);
  blocks.erase(found);
  return success;
}

Result find_range(unsigned long long* base, std::size_t* bytes, unsigned long long address) {
  const std::lock_guard lock(guard);
  const auto found = block_at(address);
  if (found == blocks.end()) return error_not_found;
  *base = found->first;
  *bytes = found->second.bytes;
  return success;
}

Result share(IpcHandle* handle, unsigned long long address) {
  const std::lock_guard lock(guard);
  const auto found = blocks.find(address);
  if (found == blocks.end()) return error_invalid_value;
  const Shared shared{getpid(), found->second.descriptor, found->second.bytes};
  std::memcpy(handle->bytes, &shared, sizeof shared);
  return success;
}

Result open_shared(unsigned long long* address, const IpcHandle& handle) {
  Shared shared{};
  std::memcpy(&shared, handle.bytes, sizeof shared);
  if (shared.process == getpid()) return error_invalid_context;
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/fd/%d", shared.process, shared.descriptor);
  const int descriptor = open(path, O_RDWR | O_CLOEXEC);
  if (descriptor < 0) return error_invalid_value;
  const std::lock_guard lock(guard);
  return map_block(address, shared.bytes, descriptor);
}

}  // namespace fake_cuda
