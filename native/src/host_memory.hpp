// Plain operations on host memory that Python is too slow or too clumsy for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "guarded_mapping.hpp"

namespace kernel_foundry {

// Byte that every output is filled with before a call: NaN as float, -1 as integer.
inline constexpr unsigned char poison_byte = 0xFF;

// Fills `size_bytes` at `address` with `byte`, on every core that this process may use.
void fill(std::uintptr_t address, std::size_t size_bytes, unsigned char byte);

// Reads every cache line, on every core: afterwards the caches hold nothing else. Reading leaves
// them clean; lines that were written would be written back while the next call is timed.
void touch(std::uintptr_t address, std::size_t size_bytes);

// Copies on every core that this process may use; the ranges must not overlap.
void copy(std::uintptr_t to, std::uintptr_t from, std::size_t size_bytes);

[[nodiscard]] bool same_bytes(std::uintptr_t a, std::uintptr_t b, std::size_t size_bytes);

// Makes malloc keep what is freed, as a caching allocator does. Without it glibc maps and faults
// fresh pages for every large result, and an eager baseline looks 3 to 5 times slower than it is.
void keep_memory();

// Anonymous pages of this process, with the same kind of pages as malloc's large blocks.
class Pages {
 public:
  explicit Pages(std::size_t size_bytes);  // throws DriverError

  [[nodiscard]] std::uintptr_t address() const noexcept { return mapping_.address(); }
  [[nodiscard]] std::size_t size_bytes() const noexcept { return size_bytes_; }

 private:
  GuardedMapping mapping_;
  std::size_t size_bytes_;
};

}  // namespace kernel_foundry
