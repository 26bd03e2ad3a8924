// Common code of devices whose memory is the host's.
#pragma once

#include "device.hpp"
#include "host_memory.hpp"

namespace kernel_foundry {

class HostDevice : public Device {
 public:
  [[nodiscard]] std::unique_ptr<Buffer> allocate(std::size_t size_bytes) final;
  void fill(std::uintptr_t address, std::size_t size_bytes, unsigned char byte) final;
  void copy(std::uintptr_t to, std::uintptr_t from, std::size_t size_bytes) final;
  void redraw(std::uintptr_t address, const RedrawPass& pass) final;
  void flush(std::size_t size_bytes) final;
  void clear(std::uintptr_t address, std::size_t size_bytes) override;
  [[nodiscard]] std::optional<std::size_t> find_other(const std::vector<ByteRange>& ranges) final;
  [[nodiscard]] std::unique_ptr<Cover> cover(std::vector<CoveredRange> ranges) final;
  [[nodiscard]] std::size_t unit_bytes() const noexcept final { return page_bytes; }
  [[nodiscard]] Comparison compare(std::uintptr_t actual, std::uintptr_t expected,
                                   const CompareOptions& options) final;
  [[nodiscard]] bool same_bytes(std::uintptr_t a, std::uintptr_t b, std::size_t size_bytes) final;

 private:
  std::unique_ptr<Pages> flushed_;
};

// Size of the last-level cache of the core that calls.
[[nodiscard]] std::size_t last_level_cache_bytes();

// All memory of the machine.
[[nodiscard]] std::size_t host_memory_bytes();

}  // namespace kernel_foundry
