#include "thread_stacks.hpp"

#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <sstream>
#include <string>
#include <vector>

#include "error.hpp"
#include "held_thread.hpp"

// The address at which the process's first frame began. Source: ld.so of glibc, symbol version
// GLIBC_2.2.5.
extern "C" void* __libc_stack_end;  // NOLINT(bugprone-reserved-identifier)

namespace kernel_foundry {
namespace {

// Bytes below its stack pointer that a function may use (System V ABI, x86-64).
constexpr std::uintptr_t red_zone_bytes = 128;
// Bytes of its own stack that this thread fills by using them; those below it fills by address.
constexpr std::size_t near_bytes = std::size_t{64} << 10;

bool is_mapped(std::uintptr_t page) noexcept {
  unsigned char ignored = 0;
  return mincore(reinterpret_cast<void*>(page), page_bytes, &ignored) == 0;
}

// Reads a file, so it must not run while a thread is held: that may have the allocator's lock.
StackBounds bounds_around(std::uintptr_t address) {
  std::ifstream maps("/proc/self/maps");
  std::uintptr_t end_before = 0;
  std::string line, protection_before;
  while (std::getline(maps, line)) {
    std::istringstream fields(line);
    std::uintptr_t begin = 0, end = 0;
    char dash = 0;
    std::string protection;
    fields >> std::hex >> begin >> dash >> end >> protection;
    if (begin <= address && address < end) {
      const bool grows = line.ends_with("[stack]");
      // A thread's stack begins at an inaccessible page; without one the mapping may be more.
      if (!grows && (end_before != begin || !protection_before.starts_with("---"))) break;
      return {begin, end, grows};
    }
    end_before = end;
    protection_before = protection;
  }
  throw DriverError("cannot find the beginning of a thread's stack: no guard page lies before it");
}

// Draws the byte that dead stacks are filled with, anew for each call. So a kernel that reads local
// or private memory before writing it finds no value to rely on. In seven of eight calls every
// format reads the byte as a number of two or more, or as NaN, so that a sum that begins there is
// wrong; in the eighth it is zero.
unsigned char filling_byte() {
  unsigned char drawn = 0;
  if (getrandom(&drawn, 1, 0) != 1) throw DriverError("getrandom gives no byte");
  if (drawn < 0x20) return 0;
  return drawn | 0x41;
}

// Fills a stack from its beginning to `top`. Pages that were never used stay unused.
void fill_below(std::uintptr_t top, StackBounds& stack, unsigned char byte) {
  while (stack.grows && is_mapped(stack.begin - page_bytes)) stack.begin -= page_bytes;
  std::array<unsigned char, 512> is_used;
  for (std::uintptr_t part = stack.begin; part < top;) {
    const std::uintptr_t end = std::min(part + is_used.size() * page_bytes, stack.end);
    if (mincore(reinterpret_cast<void*>(part), end - part, is_used.data()) != 0) {
      throw DriverError("mincore fails on a thread's stack");
    }
    for (std::size_t page = 0; part < std::min(top, end); ++page, part += page_bytes) {
      if ((is_used[page] & 1) == 0) continue;
      std::memset(reinterpret_cast<void*>(part), byte, std::min(top - part, page_bytes));
    }
  }
}

// Returns the end of the page with the name of the executed file, which Linux puts above all else.
// The end of the mapping will not do: after mprotect one stack may be several mappings.
std::uintptr_t stack_end() {
  const auto name = static_cast<std::uintptr_t>(getauxval(AT_EXECFN));
  if (name == 0 || __libc_stack_end == nullptr) {
    throw DriverError("cannot find the end of the first thread's stack");
  }
  const std::uintptr_t end = name + std::strlen(reinterpret_cast<const char*>(name)) + 1;
  return (end + page_bytes - 1) / page_bytes * page_bytes;
}

// A copy of arguments, environment and auxiliary vector, which nobody writes after the start.
class StackTop {
 public:
  StackTop()
      : begin_(reinterpret_cast<std::uintptr_t>(__libc_stack_end)),
        size_bytes_(stack_end() - begin_), kept_(size_bytes_) {
    std::memcpy(reinterpret_cast<void*>(kept_.address()), top(), size_bytes_);
    const std::size_t whole = (size_bytes_ + page_bytes - 1) / page_bytes * page_bytes;
    if (mprotect(reinterpret_cast<void*>(kept_.address()), whole, PROT_READ) != 0) {
      throw DriverError("mprotect fails on a copy of a stack's top");
    }
  }

  void restore() const noexcept {
    const auto* kept = reinterpret_cast<const void*>(kept_.address());
    if (std::memcmp(top(), kept, size_bytes_) != 0) std::memcpy(top(), kept, size_bytes_);
  }

 private:
  [[nodiscard]] void* top() const noexcept { return reinterpret_cast<void*>(begin_); }

  std::uintptr_t begin_;
  std::size_t size_bytes_;
  Pages kept_;
};

const StackTop& stack_top() {
  static const StackTop top;
  return top;
}

std::vector<HeldThread*> other_threads() {
  std::vector<HeldThread*> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    const auto id = static_cast<pid_t>(std::strtol(entry.path().filename().c_str(), nullptr, 10));
    if (id != gettid()) found.push_back(&known_thread(id));
  }
  return found;
}

// Holds threads while it lives.
class Hold {
 public:
  explicit Hold(const std::vector<HeldThread*>& threads) : threads_(threads) {
    for (HeldThread* thread : threads_) thread->ask();  // all at once: each takes a while
  }
  ~Hold() {
    for (HeldThread* thread : threads_) thread->release();
  }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
  Hold(Hold&&) = delete;
  Hold& operator=(Hold&&) = delete;

 private:
  const std::vector<HeldThread*>& threads_;
};

// Fills the stacks of threads whose bounds are known; returns the others.
std::vector<HeldThread*> fill_known(const std::vector<HeldThread*>& threads, unsigned char byte) {
  std::vector<HeldThread*> unknown;
  unknown.reserve(threads.size());  // nothing is allocated while threads are held
  const Hold hold(threads);
  for (HeldThread* thread : threads) {
    if (!thread->wait_until_held()) continue;
    const std::uintptr_t top = thread->stack_pointer() - red_zone_bytes;
    if (thread->stack.holds(top)) {
      fill_below(top, thread->stack, byte);
    } else {
      unknown.push_back(thread);
    }
  }
  return unknown;
}

[[gnu::noinline]] void fill_far(unsigned char byte) {
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  thread_local StackBounds own;
  const auto top = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)) - near_bytes / 2;
  if (!own.holds(top)) own = bounds_around(top);
  fill_below(top, own, byte);
  std::vector<HeldThread*> threads = fill_known(other_threads(), byte);
  for (HeldThread* thread : threads) thread->stack = bounds_around(thread->stack_pointer());
  if (!fill_known(threads, byte).empty()) throw DriverError("a thread's stack has moved");
}

[[gnu::noinline]] void fill_near(unsigned char byte) {
  std::array<unsigned char, near_bytes> below;
  std::memset(below.data(), byte, below.size());
  asm volatile("" : : "r"(below.data()) : "memory");  // keeps the compiler from removing memset
}

}  // namespace

void remember_stack_top() { static_cast<void>(stack_top()); }

void clear_dead_stacks() {
  stack_top().restore();
  const unsigned char byte = filling_byte();
  fill_far(byte);
  fill_near(byte);
}

}  // namespace kernel_foundry
