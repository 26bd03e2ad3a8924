// Host memory that kernels work on: at an address that nobody can guess, between inaccessible
// pages.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kernel_foundry {

inline constexpr std::size_t page_bytes = 4096;  // of x86-64, which the project is for

// A kernel gets pointers and may add any number to them. What lies at a distance that it knows, it
// reaches; so nothing else does.
class GuardedMapping {
 public:
  // `protection`, `flags` and `fd` as for mmap. Throws DriverError.
  GuardedMapping(std::size_t size_bytes, int protection, int flags, int fd);
  ~GuardedMapping() { close(); }
  GuardedMapping(const GuardedMapping&) = delete;
  GuardedMapping& operator=(const GuardedMapping&) = delete;
  GuardedMapping(GuardedMapping&&) = delete;  // `address` is handed out
  GuardedMapping& operator=(GuardedMapping&&) = delete;

  void close() noexcept;  // idempotent
  [[nodiscard]] std::uintptr_t address() const noexcept { return address_; }

 private:
  std::uintptr_t address_ = 0;  // 0: closed
  std::size_t whole_bytes_;     // without the pages around it
};

}  // namespace kernel_foundry
