#include "held_thread.hpp"

#include <linux/futex.h>
#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <climits>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "error.hpp"

namespace kernel_foundry {
namespace {

// Ignored by default, and sent by no runtime.
constexpr int stop_signal = SIGURG;
constexpr std::chrono::seconds longest_wait{5};
constexpr long slice_ns = 2'000'000;

using Table = std::vector<HeldThread*>;

// A signal handler can take no lock, so it reads tables that are never changed or freed.
std::atomic<const Table*> published{nullptr};

void on_stop(int, siginfo_t*, void* context) {
  const int error = errno;
  const auto own = static_cast<pid_t>(syscall(SYS_gettid));
  const Table* table = published.load(std::memory_order_acquire);
  for (std::size_t i = 0; table != nullptr && i < table->size(); ++i) {
    if ((*table)[i]->thread() != own) continue;
    (*table)[i]->stop(*static_cast<ucontext_t*>(context));
  }
  errno = error;
}

void install() {
  struct sigaction action{};
  action.sa_sigaction = on_stop;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(stop_signal, &action, nullptr);
}

}  // namespace

void HeldThread::ask() noexcept {
  state_.store(asked, std::memory_order_release);
  syscall(SYS_tgkill, getpid(), thread_, stop_signal);
}

bool HeldThread::wait_until_held() {
  const auto end = std::chrono::steady_clock::now() + longest_wait;
  while (true) {
    const auto now = static_cast<State>(state_.load(std::memory_order_acquire));
    if (now == held) return true;
    if (now == has_handler_stack) ask();
    wait_while(asked);
    // The thread may have ended, and then nobody answers the signal.
    if (syscall(SYS_tgkill, getpid(), thread_, 0) != 0) return false;
    if (std::chrono::steady_clock::now() > end) {
      throw DriverError("thread " + std::to_string(thread_) + " does not stop within 5 s");
    }
  }
}

void HeldThread::release() noexcept { become(runs); }

void HeldThread::stop(ucontext_t& interrupted) noexcept {
  if (state_.load(std::memory_order_acquire) != asked) return;
  if (interrupted.uc_stack.ss_size == 0) {
    // The stack that is set here is used from the next signal on. This frame is still where kernels
    // find it, so the thread is asked again.
    interrupted.uc_stack.ss_sp = reinterpret_cast<void*>(handler_stack_.address());
    interrupted.uc_stack.ss_flags = 0;
    interrupted.uc_stack.ss_size = handler_stack_.size_bytes();
    become(has_handler_stack);
    return;
  }
  stack_pointer_ = static_cast<std::uintptr_t>(interrupted.uc_mcontext.gregs[REG_RSP]);
  become(held);
  while (state_.load(std::memory_order_acquire) == held) wait_while(held);
}

void HeldThread::become(State state) noexcept {
  state_.store(state, std::memory_order_release);
  syscall(SYS_futex, &state_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

void HeldThread::wait_while(State state) noexcept {
  const timespec slice{0, slice_ns};
  syscall(SYS_futex, &state_, FUTEX_WAIT_PRIVATE, state, &slice, nullptr, 0);
}

HeldThread& known_thread(pid_t thread) {
  static std::mutex guard;
  static std::vector<std::unique_ptr<HeldThread>> all;
  static std::vector<std::unique_ptr<const Table>> tables;
  const std::lock_guard lock(guard);
  for (const auto& known : all) {
    if (known->thread() == thread) return *known;
  }
  if (all.empty()) install();
  all.push_back(std::make_unique<HeldThread>(thread));
  Table table;
  for (const auto& known : all) table.push_back(known.get());
  tables.push_back(std::make_unique<const Table>(std::move(table)));
  published.store(tables.back().get(), std::memory_order_release);
  return *all.back();
}

}  // namespace kernel_foundry
