// Another thread of this process, held in a signal handler while its stack is cleared.
#pragma once

#include <sys/types.h>
#include <ucontext.h>

#include <atomic>
#include <cstdint>

#include "host_memory.hpp"

namespace kernel_foundry {

struct StackBounds {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  bool grows = false;  // true for the stack of the process's first thread

  [[nodiscard]] bool holds(std::uintptr_t address) const noexcept {
    return begin <= address && address < end;
  }
};

class HeldThread {
 public:
  explicit HeldThread(pid_t thread) : thread_(thread), handler_stack_(handler_stack_bytes) {}

  [[nodiscard]] pid_t thread() const noexcept { return thread_; }
  // Asks the thread to stop; does nothing if it has ended.
  void ask() noexcept;
  // Returns false if the thread has ended. Throws DriverError if it does not stop.
  [[nodiscard]] bool wait_until_held();
  // The lower end of the part of its stack that is in use; valid while it is held.
  [[nodiscard]] std::uintptr_t stack_pointer() const noexcept { return stack_pointer_; }
  void release() noexcept;

  StackBounds stack;  // set by the holder; empty initially

  // Called by the thread itself, in the handler; returns when it is released.
  void stop(ucontext_t& interrupted) noexcept;

 private:
  enum State : std::uint32_t { runs, asked, has_handler_stack, held };

  void wait_while(State state) noexcept;
  void become(State state) noexcept;

  // The kernel of the operating system saves the interrupted registers on the handler's stack. This
  // one is where no candidate's kernel finds them, and has room for the handler of faults as well.
  static constexpr std::size_t handler_stack_bytes = std::size_t{64} << 10;

  pid_t thread_;
  Pages handler_stack_;
  std::atomic<std::uint32_t> state_{runs};
  std::uintptr_t stack_pointer_ = 0;
};

// Returns the entry of a thread, and makes it if there is none. Entries are kept for good, since a
// signal may still be on its way to a thread.
[[nodiscard]] HeldThread& known_thread(pid_t thread);

}  // namespace kernel_foundry
