// Another thread of this process, held in a signal handler while its stack is looked after.
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
  bool grows = false;  // that of the process's first thread

  [[nodiscard]] bool holds(std::uintptr_t address) const noexcept {
    return begin <= address && address < end;
  }
};

class HeldThread {
 public:
  explicit HeldThread(pid_t thread) : thread_(thread), handler_stack_(handler_stack_bytes) {}

  [[nodiscard]] pid_t thread() const noexcept { return thread_; }
  // Asks it to stop; does nothing where it has ended.
  void ask() noexcept;
  // False where it has ended. Throws DriverError where it does not stop.
  [[nodiscard]] bool wait_until_held();
  // Where the part of its stack ends that is in use; while it is held.
  [[nodiscard]] std::uintptr_t stack_pointer() const noexcept { return stack_pointer_; }
  void release() noexcept;

  StackBounds stack;  // set by the holder; empty initially

  // On the thread itself, in the handler: returns when it is released.
  void stop(ucontext_t& interrupted) noexcept;

 private:
  enum State : std::uint32_t { runs, asked, has_handler_stack, held };

  void wait_while(State state) noexcept;
  void become(State state) noexcept;

  // A handler begins with the registers that a kernel left: they go to where no kernel finds them.
  // There is room for them, and for the handler of faults.
  static constexpr std::size_t handler_stack_bytes = std::size_t{64} << 10;

  pid_t thread_;
  Pages handler_stack_;
  std::atomic<std::uint32_t> state_{runs};
  std::uintptr_t stack_pointer_ = 0;
};

// From now on the handler finds this thread. It is kept: a signal may be on its way to it.
[[nodiscard]] HeldThread& known_thread(pid_t thread);

}  // namespace kernel_foundry
