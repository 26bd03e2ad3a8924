// Random numbers that decide about calls of a measurement: which set is next, whether a call has a
// guest's inputs, where its outputs are kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace kernel_foundry {

// Those of one call, as they lie in the file.
struct CallDraw {
  std::uint32_t set = 0;
  std::uint32_t guest = 0;
  std::uint32_t keep = 0;
};

// Another than `last` where there is a choice.
[[nodiscard]] std::size_t next_set(std::uint32_t drawn, std::size_t last, std::size_t set_count);

// About one call of 1 to 3, one of 4 to 15, one of 16 to 63 and so on; whether one was made tells
// nothing of the next.
[[nodiscard]] bool is_guest(std::uint32_t drawn, std::size_t call);

// Where to keep a call, if at all: a uniform choice without knowing how many there will be.
// Source: reservoir sampling, algorithm R.
[[nodiscard]] std::optional<std::size_t> keep_slot(std::uint32_t drawn, std::size_t keep_count,
                                                   std::size_t call);

// Read call by call from a file that no process has mapped. Kernels on the CPU can read all memory
// of their process, but make no system calls: what was not read yet, no kernel knows.
class CallDraws {
 public:
  // A negative descriptor: the system draws, and nobody else can tell what.
  explicit CallDraws(int descriptor);  // throws std::invalid_argument where the file holds none

  [[nodiscard]] bool can_be_read_again() const noexcept { return descriptor_ >= 0; }
  // Reads those of a call, counted from 0; after the last ones the first come again. Callers must
  // wipe everything except `set` before a launch. Throws DriverError.
  void read(std::size_t call, CallDraw& draw) const;

 private:
  int descriptor_;
  std::size_t count_ = 0;
};

// The same from the bytes that were written into that file.
class KnownCallDraws {
 public:
  explicit KnownCallDraws(std::string bytes);  // throws std::invalid_argument where there are none

  [[nodiscard]] CallDraw at(std::size_t call) const;

 private:
  std::string bytes_;
};

}  // namespace kernel_foundry
