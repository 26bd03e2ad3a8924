#include "watched_zones.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>

#include "error.hpp"

namespace kernel_foundry {
namespace {

struct Entry {
  std::uint64_t owner;
  Zone zone;
  bool is_hidden;
};

using Table = std::vector<Entry>;

// A signal handler can take no lock. So it reads tables that are never changed or freed: every
// change adds a new one, and they are small.
std::mutex guard;
std::vector<std::unique_ptr<const Table>>& tables() {
  static std::vector<std::unique_ptr<const Table>> all;
  return all;
}
std::vector<std::unique_ptr<const Table>>& hidden_tables() {
  static std::vector<std::unique_ptr<const Table>> all;
  return all;
}
std::atomic<const Table*> published{nullptr};
std::atomic<const Table*> hidden{nullptr};
std::atomic<const Entry*> first_write{nullptr};
std::atomic<const Entry*> first_read{nullptr};
std::uint64_t next_number = 1;
struct sigaction previous{};

constexpr long long error_code_write = 2;

const Entry* entry_at(std::uintptr_t address, const Table* table) {
  for (std::size_t i = 0; table != nullptr && i < table->size(); ++i) {
    const Entry& entry = (*table)[i];
    if (address - entry.zone.address < entry.zone.size_bytes) return &entry;
  }
  return nullptr;
}

void on_fault(int number, siginfo_t* facts, void* context) {
  const auto address = reinterpret_cast<std::uintptr_t>(facts->si_addr);
  const Entry* entry = entry_at(address, hidden.load(std::memory_order_acquire));
  if (entry == nullptr) entry = entry_at(address, published.load(std::memory_order_acquire));
  if (entry != nullptr) {
    const auto* registers = static_cast<const ucontext_t*>(context)->uc_mcontext.gregs;
    const bool is_write = (registers[REG_ERR] & error_code_write) != 0;
    const Entry* none = nullptr;
    (is_write ? first_write : first_read).compare_exchange_strong(none, entry);
    // A read opens the zone for reads only, since a store that follows is the more important one.
    const int protection = is_write ? PROT_READ | PROT_WRITE : PROT_READ;
    if (mprotect(reinterpret_cast<void*>(entry->zone.address), entry->zone.size_bytes,
                 protection) == 0) {
      return;
    }
  }
  sigaction(number, &previous, nullptr);  // and the access faults again
}

void install() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action{};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigemptyset(&action.sa_mask);
    sigaction(SIGSEGV, &action, &previous);
  });
}

bool protect(const Zone& zone, int protection) noexcept {
  return zone.size_bytes == 0 ||
         mprotect(reinterpret_cast<void*>(zone.address), zone.size_bytes, protection) == 0;
}

void publish(Table table) {
  tables().push_back(std::make_unique<const Table>(std::move(table)));
  published.store(tables().back().get(), std::memory_order_release);
}

Table current() { return tables().empty() ? Table{} : *tables().back(); }

}  // namespace

WatchedZones::WatchedZones(std::vector<Zone> zones) : zones_(std::move(zones)) {
  install();
  {
    const std::lock_guard lock(guard);
    number_ = next_number++;
    Table table = current();
    for (const Zone& zone : zones_) table.push_back({number_, zone, false});
    publish(std::move(table));
  }
  for (const Zone& zone : zones_) {
    if (protect(zone, zone.is_readable ? PROT_READ : PROT_NONE)) continue;
    const int error = errno;
    close();
    throw DriverError("cannot protect memory around " + zone.name + ": " + std::strerror(error));
  }
}

void WatchedZones::close() noexcept {
  if (zones_.empty()) return;
  for (const Zone& zone : zones_) protect(zone, PROT_READ | PROT_WRITE);
  const std::lock_guard lock(guard);
  Table table = current();
  std::erase_if(table, [this](const Entry& entry) { return entry.owner == number_; });
  publish(std::move(table));
  zones_.clear();
}

HiddenZones::HiddenZones(std::vector<Zone> zones) {
  install();
  Table table;
  for (Zone& zone : zones) table.push_back({0, std::move(zone), true});
  const std::lock_guard lock(guard);
  table_ = hidden_tables().size();
  hidden_tables().push_back(std::make_unique<const Table>(std::move(table)));
}

void HiddenZones::hide() {
  const Table* table = nullptr;
  {
    const std::lock_guard lock(guard);
    table = hidden_tables()[table_].get();
  }
  is_hidden_ = true;
  hidden.store(table, std::memory_order_release);
  for (const Entry& entry : *table) {
    if (protect(entry.zone, PROT_NONE)) continue;
    const int error = errno;
    show();
    throw DriverError("cannot close the memory of " + entry.zone.name + ": " +
                      std::strerror(error));
  }
}

void HiddenZones::show() noexcept {
  if (!is_hidden_) return;
  is_hidden_ = false;
  for (const Entry& entry : *hidden.load(std::memory_order_acquire)) {
    protect(entry.zone, entry.zone.is_readable ? PROT_READ : PROT_READ | PROT_WRITE);
  }
  hidden.store(nullptr, std::memory_order_release);
}

std::optional<Trespass> first_trespass() {
  if (const Entry* entry = first_write.load()) {
    return Trespass{entry->zone.name, entry->zone.is_readable, true, entry->is_hidden};
  }
  if (const Entry* entry = first_read.load()) {
    return Trespass{entry->zone.name, entry->zone.is_readable, false, entry->is_hidden};
  }
  return std::nullopt;
}

OwnWrite::OwnWrite(std::uintptr_t address, std::size_t size_bytes) {
  const Table* table = published.load(std::memory_order_acquire);
  if (table == nullptr) return;
  for (const Entry& entry : *table) {
    const Zone& zone = entry.zone;
    const bool meets =
        address < zone.address + zone.size_bytes && zone.address < address + size_bytes;
    if (!meets || !zone.is_readable) continue;
    if (protect(zone, PROT_READ | PROT_WRITE)) {
      opened_.push_back(&zone);
      continue;
    }
    const int error = errno;
    close();
    const std::string text = "cannot write to " + zone.name + ": " + std::strerror(error);
    // Linux counts what may be written, not what may be read: a limit is met here at times.
    if (error == ENOMEM) throw OutOfMemoryError(text);
    throw DriverError(text);
  }
}

void OwnWrite::close() noexcept {
  for (const Zone* zone : opened_) protect(*zone, PROT_READ);
}

}  // namespace kernel_foundry
