#include "host_memory.hpp"

#include <malloc.h>
#include <sys/mman.h>

#include <atomic>
#include <cstring>
#include <limits>

#include "parallel.hpp"

namespace kernel_foundry {
namespace {

constexpr std::size_t grain_bytes = std::size_t{1} << 20;
constexpr std::size_t cache_line_bytes = 64;

}  // namespace

void fill(std::uintptr_t address, std::size_t size_bytes, unsigned char byte) {
  parallel_for(size_bytes, grain_bytes, [=](std::size_t, std::size_t begin, std::size_t end) {
    std::memset(reinterpret_cast<void*>(address + begin), byte, end - begin);
  });
}

void touch(std::uintptr_t address, std::size_t size_bytes) {
  parallel_for(size_bytes, grain_bytes, [=](std::size_t, std::size_t begin, std::size_t end) {
    const auto* bytes = reinterpret_cast<const volatile unsigned char*>(address);
    for (std::size_t i = begin; i < end; i += cache_line_bytes) static_cast<void>(bytes[i]);
  });
}

void copy(std::uintptr_t to, std::uintptr_t from, std::size_t size_bytes) {
  parallel_for(size_bytes, grain_bytes, [=](std::size_t, std::size_t begin, std::size_t end) {
    std::memcpy(reinterpret_cast<void*>(to + begin), reinterpret_cast<const void*>(from + begin),
                end - begin);
  });
}

bool same_bytes(std::uintptr_t a, std::uintptr_t b, std::size_t size_bytes) {
  std::atomic<bool> is_same{true};
  parallel_for(size_bytes, grain_bytes, [&](std::size_t, std::size_t begin, std::size_t end) {
    if (std::memcmp(reinterpret_cast<const void*>(a + begin),
                    reinterpret_cast<const void*>(b + begin), end - begin) != 0) {
      is_same = false;
    }
  });
  return is_same;
}

void keep_memory() {
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
  mallopt(M_TOP_PAD, 64 << 20);
}

Pages::Pages(std::size_t size_bytes)
    : mapping_(size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1),
      size_bytes_(size_bytes) {}

}  // namespace kernel_foundry
