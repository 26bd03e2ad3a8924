// Random numbers that decide about the calls of a measurement: which input set is next, whether a
// call has a guest's inputs, and where its outputs are kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace kernel_foundry {

// The random numbers of one call, in the layout of the file.
struct CallDraw {
  std::uint32_t set = 0;
  std::uint32_t guest = 0;
  std::uint32_t keep = 0;
};

// Returns the next set: not `last`, unless there is only one.
[[nodiscard]] std::size_t next_set(std::uint32_t drawn, std::size_t last, std::size_t set_count);

// Returns whether a call has a guest's inputs: about one of the calls 1 to 3, one of 4 to 15, one
// of 16 to 63 and so on. Each call is drawn independently of the others.
[[nodiscard]] bool is_guest(std::uint32_t drawn, std::size_t call);

// Returns the slot that keeps a call's outputs, if any. Every call is kept with the same
// probability, although nobody knows how many there will be.
// Source: reservoir sampling, algorithm R.
[[nodiscard]] std::optional<std::size_t> keep_slot(std::uint32_t drawn, std::size_t keep_count,
                                                   std::size_t call);

// Reads the draws call by call from a file that no process has mapped. Kernels on the CPU can read
// all memory of their process, but make no system calls: they cannot know draws that were not read.
class CallDraws {
 public:
  // With a negative descriptor the operating system draws, and nobody can repeat the draws.
  explicit CallDraws(int descriptor);  // throws std::invalid_argument if the file is empty

  [[nodiscard]] bool can_be_read_again() const noexcept { return descriptor_ >= 0; }
  // Reads the draw of a call, counted from 0; after the last draw the first comes again. Callers
  // must wipe everything except `set` before a launch. Throws DriverError.
  void read(std::size_t call, CallDraw& draw) const;

 private:
  int descriptor_;
  std::size_t count_ = 0;
};

// The same draws, from the bytes that were written into that file.
class KnownCallDraws {
 public:
  explicit KnownCallDraws(std::string bytes);  // throws std::invalid_argument if there are none

  [[nodiscard]] CallDraw at(std::size_t call) const;

 private:
  std::string bytes_;
};

}  // namespace kernel_foundry
