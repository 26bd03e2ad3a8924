// Zones of host memory that kernels must not write, or not touch at all, and the first access that
// broke this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kernel_foundry {

struct Zone {
  std::uintptr_t address;  // the beginning of a page
  std::size_t size_bytes;  // of whole pages
  bool is_readable;
  std::string name;  // name of the tensor in it, or of the tensor before it
};

struct Trespass {
  std::string name;
  bool is_readable;  // of the zone
  bool is_write;
  bool is_hidden;  // whether the zone was hidden at the time
};

// Protects its zones while it lives. A forbidden access is remembered and then let through, so that
// the process can report the tensor instead of dying.
class WatchedZones {
 public:
  explicit WatchedZones(std::vector<Zone> zones);  // throws DriverError
  ~WatchedZones() { close(); }
  WatchedZones(const WatchedZones&) = delete;
  WatchedZones& operator=(const WatchedZones&) = delete;
  WatchedZones(WatchedZones&&) = delete;  // a table refers to it by its number
  WatchedZones& operator=(WatchedZones&&) = delete;

  // Opens every zone for good; idempotent. Must be called before the memory is freed.
  void close() noexcept;

 private:
  std::uint64_t number_;
  std::vector<Zone> zones_;
};

// Makes its zones inaccessible between `hide` and `show`. When shown, readable zones may only be
// read, and all others read and written. A process may hide only one HiddenZones at a time.
class HiddenZones {
 public:
  explicit HiddenZones(std::vector<Zone> zones);
  ~HiddenZones() { show(); }
  HiddenZones(const HiddenZones&) = delete;
  HiddenZones& operator=(const HiddenZones&) = delete;
  HiddenZones(HiddenZones&&) = delete;  // the destructor shows once
  HiddenZones& operator=(HiddenZones&&) = delete;

  void hide();  // throws DriverError
  void show() noexcept;

 private:
  std::size_t table_;  // index of the table of its zones, which lasts as long as the process
  bool is_hidden_ = false;
};

// Returns the first forbidden store since the process began; without one, the first forbidden load.
[[nodiscard]] std::optional<Trespass> first_trespass();

// While it lives, this process may write to a range that lies in readable zones.
class OwnWrite {
 public:
  // Throws OutOfMemoryError if the process may have no more writable memory.
  OwnWrite(std::uintptr_t address, std::size_t size_bytes);
  ~OwnWrite() { close(); }
  OwnWrite(const OwnWrite&) = delete;
  OwnWrite& operator=(const OwnWrite&) = delete;
  OwnWrite(OwnWrite&&) = delete;  // the destructor closes once
  OwnWrite& operator=(OwnWrite&&) = delete;

 private:
  void close() noexcept;

  std::vector<const Zone*> opened_;
};

}  // namespace kernel_foundry
