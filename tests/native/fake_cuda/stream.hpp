// Streams of the fake driver: work runs at once, unless it stands behind a wait.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "memory.hpp"

namespace fake_cuda {

// A fault stays: nothing works after it.
inline Result context_fault = success;

struct Operation {
  std::function<bool()> is_ready;  // none: always
  std::function<Result()> run;
};

using Graph = std::vector<Operation>;

struct Event {
  std::chrono::steady_clock::time_point recorded;
};

class Stream {
 public:
  Result add(Operation operation) {
    if (context_fault != success) return context_fault;
    if (capture_ != nullptr) {
      capture_->push_back(std::move(operation));
      return success;
    }
    waiting_.push_back(std::move(operation));
    advance();
    return success;  // what a kernel did is told by the next call
  }

  Result finish() {
    while (!waiting_.empty()) {
      advance();
      std::this_thread::yield();
    }
    return context_fault;
  }

  Result begin_capture() { return capture_ = new Graph, success; }
  Result end_capture(Graph** graph) {
    *graph = capture_;
    capture_ = nullptr;
    return success;
  }

 private:
  void advance() {
    while (!waiting_.empty()) {
      Operation& next = waiting_.front();
      if (next.is_ready && !next.is_ready()) return;
      if (next.run && context_fault == success) context_fault = next.run();
      waiting_.pop_front();
    }
  }

  std::deque<Operation> waiting_;
  Graph* capture_ = nullptr;
};

}  // namespace fake_cuda
