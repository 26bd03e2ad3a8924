#include "host_device.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "redraw_tensor.hpp"
#include "watched_zones.hpp"

namespace kernel_foundry {
namespace {

class HostBuffer final : public Buffer {
 public:
  explicit HostBuffer(std::size_t size_bytes) : pages_(size_bytes) {}
  [[nodiscard]] std::uintptr_t address() const noexcept override { return pages_.address(); }
  [[nodiscard]] std::size_t size_bytes() const noexcept override { return pages_.size_bytes(); }

 private:
  Pages pages_;
};

class ClosedPages final : public Cover {
 public:
  explicit ClosedPages(std::vector<Zone> zones) : zones_(std::move(zones)) {}
  void hide() override { zones_.hide(); }
  void show() override { zones_.show(); }

 private:
  HiddenZones zones_;
};

}  // namespace

std::unique_ptr<Cover> HostDevice::cover(std::vector<CoveredRange> ranges) {
  std::vector<Zone> zones;
  for (CoveredRange& range : ranges) {
    if (range.size_bytes == 0) continue;
    const std::uintptr_t begin = range.address / page_bytes * page_bytes;
    const std::uintptr_t end =
        (range.address + range.size_bytes + page_bytes - 1) / page_bytes * page_bytes;
    zones.push_back({begin, end - begin, range.is_read_only, std::move(range.name)});
  }
  return std::make_unique<ClosedPages>(std::move(zones));
}

std::unique_ptr<Buffer> HostDevice::allocate(std::size_t size_bytes) {
  return std::make_unique<HostBuffer>(size_bytes);
}

void HostDevice::fill(std::uintptr_t address, std::size_t size_bytes, unsigned char byte) {
  const OwnWrite allowed(address, size_bytes);
  kernel_foundry::fill(address, size_bytes, byte);
}

void HostDevice::copy(std::uintptr_t to, std::uintptr_t from, std::size_t size_bytes) {
  const OwnWrite allowed(to, size_bytes);
  kernel_foundry::copy(to, from, size_bytes);
}

void HostDevice::redraw(std::uintptr_t address, const RedrawPass& pass) {
  const OwnWrite allowed(address, pass.size_bytes);
  redraw_on_host(address, pass);
}

void HostDevice::clear(std::uintptr_t address, std::size_t size_bytes) {
  const OwnWrite allowed(address, size_bytes);
  kernel_foundry::fill(address, size_bytes, 0);
}

std::optional<std::size_t> HostDevice::find_other(const std::vector<ByteRange>& ranges) {
  wait();
  const auto other = std::ranges::find_if(ranges, [](const ByteRange& range) {
    const auto* begin = reinterpret_cast<const unsigned char*>(range.address);
    return !std::all_of(begin, begin + range.size_bytes,
                        [&](unsigned char found) { return found == range.byte; });
  });
  if (other == ranges.end()) return std::nullopt;
  return static_cast<std::size_t>(other - ranges.begin());
}

Comparison HostDevice::compare(std::uintptr_t actual, std::uintptr_t expected,
                               const CompareOptions& options) {
  return kernel_foundry::compare(actual, expected, options);
}

bool HostDevice::same_bytes(std::uintptr_t a, std::uintptr_t b, std::size_t size_bytes) {
  return kernel_foundry::same_bytes(a, b, size_bytes);
}

void HostDevice::flush(std::size_t size_bytes) {
  if (!flushed_ || flushed_->size_bytes() != size_bytes) {
    flushed_ = std::make_unique<Pages>(size_bytes);
    // Pages that were never written are all one page of zeros, which would displace nothing.
    kernel_foundry::fill(flushed_->address(), size_bytes, 1);
  }
  touch(flushed_->address(), size_bytes);
}

std::size_t last_level_cache_bytes() {
  std::size_t largest = 0;
  const std::filesystem::path caches = "/sys/devices/system/cpu/cpu0/cache";
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(caches, ignored)) {
    std::ifstream file(entry.path() / "size");
    std::size_t size = 0;
    char unit = 'K';
    if (file >> size >> unit) largest = std::max(largest, size << (unit == 'M' ? 20 : 10));
  }
  // Some sandboxes and machines hide the caches; a usual server's share is assumed then.
  return largest == 0 ? std::size_t{32} << 20 : largest;
}

std::size_t host_memory_bytes() {
  return static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<std::size_t>(sysconf(_SC_PAGE_SIZE));
}

}  // namespace kernel_foundry
