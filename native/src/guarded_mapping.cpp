#include "guarded_mapping.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <random>
#include <string>

#include "error.hpp"

namespace kernel_foundry {
namespace {

// Between the heap of a small program and where a kernel puts libraries and stacks by itself.
constexpr std::uintptr_t lowest = std::uintptr_t{1} << 40;
constexpr std::uintptr_t highest = std::uintptr_t{1} << 46;
constexpr std::uintptr_t stride = std::uintptr_t{2} << 20;  // of a large page
constexpr int attempts = 16;

// The pages from one guard to the other, none accessible; nullopt where all places were taken.
std::optional<std::uintptr_t> reserve_anywhere(std::size_t size_bytes) {
  std::random_device random;
  std::uniform_int_distribution<std::uintptr_t> place(lowest / stride, highest / stride);
  for (int attempt = 0; attempt < attempts; ++attempt) {
    const std::uintptr_t wanted = place(random) * stride - page_bytes;
    void* mapped = mmap(reinterpret_cast<void*>(wanted), size_bytes, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (mapped == reinterpret_cast<void*>(wanted)) return wanted;
    // A kernel older than the flag takes the address for a hint.
    if (mapped != MAP_FAILED) munmap(mapped, size_bytes);
  }
  return std::nullopt;
}

}  // namespace

GuardedMapping::GuardedMapping(std::size_t size_bytes, int protection, int flags, int fd)
    : whole_bytes_((std::max<std::size_t>(size_bytes, 1) + page_bytes - 1) / page_bytes *
                   page_bytes) {
  const auto reserved = reserve_anywhere(whole_bytes_ + 2 * page_bytes);
  if (!reserved) {
    throw OutOfMemoryError("cannot allocate " + std::to_string(size_bytes) +
                           " bytes: no address space");
  }
  void* mapped = mmap(reinterpret_cast<void*>(*reserved + page_bytes), whole_bytes_, protection,
                      flags | MAP_FIXED, fd, 0);
  if (mapped == MAP_FAILED) {
    const int error = errno;
    munmap(reinterpret_cast<void*>(*reserved), whole_bytes_ + 2 * page_bytes);
    const std::string text =
        "cannot allocate " + std::to_string(size_bytes) + " bytes: " + std::strerror(error);
    if (error == ENOMEM) throw OutOfMemoryError(text);
    throw DriverError(text);
  }
  address_ = *reserved + page_bytes;
}

void GuardedMapping::close() noexcept {
  if (address_ == 0) return;
  munmap(reinterpret_cast<void*>(address_ - page_bytes), whole_bytes_ + 2 * page_bytes);
  address_ = 0;
}

}  // namespace kernel_foundry
