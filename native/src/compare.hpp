// Compares a candidate's output with the expected one, every element.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace kernel_foundry {

// An element is right when |actual - expected| <= atol * scale[(i / inner) % groups]
// + rtol * |expected|. NaN equals NaN and an infinity equals itself; else neither is ever right.
struct CompareOptions {
  std::string dtype;
  std::size_t count = 0;
  double rtol = 0;
  double atol = 0;
  std::uintptr_t scale = 0;  // float32, `groups` of them; 0: all scales are 1
  std::size_t groups = 1;
  std::size_t inner = 1;
};

struct Comparison {
  std::int64_t mismatch_count = 0;
  double max_abs_error = 0;  // NaN when an element is NaN that should not be
  double max_rel_error = 0;
  std::int64_t first_mismatch = -1;
  std::int64_t nan_count = 0;  // in the actual output
  std::int64_t inf_count = 0;
  std::int64_t poisoned_count = 0;  // mismatches that still hold the poison pattern
  double constant_factor =
      0;  // actual / expected if all mismatches share it within 0.1 %, else NaN
};

// Throws std::invalid_argument for an unknown dtype.
[[nodiscard]] Comparison compare(std::uintptr_t actual, std::uintptr_t expected,
                                 const CompareOptions& options);

}  // namespace kernel_foundry
