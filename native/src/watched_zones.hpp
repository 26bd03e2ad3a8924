// Stretches of host memory that kernels must not write, or not touch at all, and what they did.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kernel_foundry {

struct Zone {
  std::uintptr_t address;  // of a page
  std::size_t size_bytes;  // of whole pages
  bool is_readable;
  std::string name;  // of the tensor that it is, or that it lies behind
};

struct Trespass {
  std::string name;
  bool is_readable;  // what the zone was
  bool is_write;
  bool is_hidden;  // the zone, for a while
};

// Protects its zones while it lives. An access that one forbids is remembered and let pass, so that
// the process can say which tensor it was instead of dying.
class WatchedZones {
 public:
  explicit WatchedZones(std::vector<Zone> zones);  // throws DriverError
  ~WatchedZones() { close(); }
  WatchedZones(const WatchedZones&) = delete;
  WatchedZones& operator=(const WatchedZones&) = delete;
  WatchedZones(WatchedZones&&) = delete;  // it is registered by its number
  WatchedZones& operator=(WatchedZones&&) = delete;

  // Opens every zone for good; idempotent. Before the memory is given back.
  void close() noexcept;

 private:
  std::uint64_t number_;
  std::vector<Zone> zones_;
};

// Makes its zones inaccessible between `hide` and `show`. Otherwise readable zones may be read, and
// all others also written. At most one HiddenZones may be hidden per process.
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
  std::size_t table_;  // where the zones are for as long as the process lives
  bool is_hidden_ = false;
};

// The first store into any zone since the process began; else the first load.
[[nodiscard]] std::optional<Trespass> first_trespass();

// Opens the readable zones that a range lies in while it lives, so that this process can write
// there.
class OwnWrite {
 public:
  // Throws OutOfMemoryError where the process may hold no more writable memory.
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
