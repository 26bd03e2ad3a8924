// Memory that two processes share through a file descriptor (memfd).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "guarded_mapping.hpp"

namespace kernel_foundry {

class SharedBuffer {
 public:
  // Makes a buffer of zeros whose size nobody can change. Throws DriverError.
  static std::unique_ptr<SharedBuffer> create(std::size_t size_bytes);

  // Maps the buffer behind `fd`, which stays the caller's; `fd` is duplicated. Throws DriverError
  // when it is smaller than `size_bytes`.
  static std::unique_ptr<SharedBuffer> open(int fd, std::size_t size_bytes, bool read_only);

  ~SharedBuffer();
  SharedBuffer(const SharedBuffer&) = delete;
  SharedBuffer& operator=(const SharedBuffer&) = delete;
  SharedBuffer(SharedBuffer&&) = delete;  // `address` is handed out
  SharedBuffer& operator=(SharedBuffer&&) = delete;

  void close() noexcept;  // idempotent
  [[nodiscard]] int fd() const noexcept { return fd_; }
  [[nodiscard]] std::uintptr_t address() const noexcept {
    return mapping_ ? mapping_->address() : 0;
  }
  [[nodiscard]] std::size_t size_bytes() const noexcept { return size_bytes_; }
  [[nodiscard]] bool read_only() const noexcept { return read_only_; }

 private:
  SharedBuffer(int fd, std::size_t size_bytes, bool read_only);

  int fd_;
  std::unique_ptr<GuardedMapping> mapping_;  // null: closed
  std::size_t size_bytes_;
  bool read_only_;
};

}  // namespace kernel_foundry
