// A launch's arguments as the driver wants them: the address of each value.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "device.hpp"

namespace kernel_foundry {

class CudaArguments {
 public:
  // Throws LaunchError for a value that does not fit its type.
  CudaArguments(const Launch& launch, const std::vector<std::uintptr_t>& addresses);
  CudaArguments(const CudaArguments&) = delete;  // `pointers` points into it
  CudaArguments& operator=(const CudaArguments&) = delete;

  [[nodiscard]] void** pointers() noexcept { return pointers_.data(); }
  // Throws LaunchError unless these are what a kernel with parameters of `sizes` bytes takes.
  void check_against(const std::vector<std::size_t>& sizes, const std::string& kernel) const;

 private:
  struct Value {
    alignas(8) std::array<std::byte, 8> bytes{};
    std::size_t size_bytes = 0;
  };

  template <typename T>
  void set(Value& value, T number);
  template <typename T, typename Number>
  bool set_as(const char* name, const ScalarArgument& argument, Number number, Value& value);
  void set_scalar(const ScalarArgument& argument, Value& value);

  std::vector<Value> values_;
  std::vector<void*> pointers_;
};

// Nearest number of a short floating-point type, ties to even: 10 bits of fraction and a bias of 15
// are float16, 7 and 127 are bfloat16.
[[nodiscard]] std::uint16_t short_float_bits(double value, int fraction_bits, int bias);

}  // namespace kernel_foundry
