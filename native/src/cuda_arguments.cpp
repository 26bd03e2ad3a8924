#include "cuda_arguments.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>
#include <variant>

#include "error.hpp"

namespace kernel_foundry {

CudaArguments::CudaArguments(const Launch& launch, const std::vector<std::uintptr_t>& addresses)
    : values_(launch.arguments.size()) {
  pointers_.reserve(values_.size());
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const Argument& argument = launch.arguments[i];
    if (const auto* buffer = std::get_if<BufferArgument>(&argument)) {
      set(values_[i], std::uint64_t{addresses.at(buffer->index)});
    } else if (const auto* scalar = std::get_if<ScalarArgument>(&argument)) {
      set_scalar(*scalar, values_[i]);
    } else {
      throw LaunchError("CUDA kernels have shared memory for the launch, not as an argument",
                        LaunchFault::invalid);
    }
    pointers_.push_back(values_[i].bytes.data());
  }
}

void CudaArguments::check_against(const std::vector<std::size_t>& sizes,
                                  const std::string& kernel) const {
  if (values_.size() != sizes.size()) {
    throw LaunchError(kernel + " takes " + std::to_string(sizes.size()) + " arguments, not " +
                          std::to_string(values_.size()),
                      LaunchFault::invalid);
  }
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (values_[i].size_bytes == sizes[i]) continue;
    throw LaunchError("argument " + std::to_string(i) + " of " + kernel + " has " +
                          std::to_string(sizes[i]) + " bytes, not " +
                          std::to_string(values_[i].size_bytes),
                      LaunchFault::invalid);
  }
}

template <typename T>
void CudaArguments::set(Value& value, T number) {
  static_assert(sizeof(T) <= sizeof(value.bytes) && std::is_trivially_copyable_v<T>);
  std::memcpy(value.bytes.data(), &number, sizeof(T));
  value.size_bytes = sizeof(T);
}

template <typename T, typename Number>
bool CudaArguments::set_as(const char* name, const ScalarArgument& argument, Number number,
                           Value& value) {
  if (argument.type != name) return false;
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool> && std::is_integral_v<Number>) {
    if (!std::in_range<T>(number)) {
      throw LaunchError(std::to_string(number) + " is no " + argument.type, LaunchFault::invalid);
    }
  }
  set(value, static_cast<T>(number));
  return true;
}

void CudaArguments::set_scalar(const ScalarArgument& argument, Value& value) {
  std::visit(
      [&](auto number) {
        const auto real = static_cast<double>(number);
        if (argument.type == "float16") return set(value, short_float_bits(real, 10, 15));
        if (argument.type == "bfloat16") return set(value, short_float_bits(real, 7, 127));
        const bool is_set = set_as<std::int8_t>("int8", argument, number, value) ||
                            set_as<std::int16_t>("int16", argument, number, value) ||
                            set_as<std::int32_t>("int32", argument, number, value) ||
                            set_as<std::int64_t>("int64", argument, number, value) ||
                            set_as<std::uint8_t>("uint8", argument, number, value) ||
                            set_as<std::uint16_t>("uint16", argument, number, value) ||
                            set_as<std::uint32_t>("uint32", argument, number, value) ||
                            set_as<std::uint64_t>("uint64", argument, number, value) ||
                            set_as<float>("float32", argument, number, value) ||
                            set_as<double>("float64", argument, number, value) ||
                            set_as<bool>("bool", argument, number, value);
        if (!is_set) {
          throw LaunchError("no scalar type called " + argument.type, LaunchFault::invalid);
        }
      },
      argument.value);
}

std::uint16_t short_float_bits(double value, int fraction_bits, int bias) {
  const int infinity = (2 * bias + 1) << fraction_bits;
  const int sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isnan(value)) return static_cast<std::uint16_t>(infinity | 1 << (fraction_bits - 1));
  const double magnitude = std::abs(value);
  if (magnitude == 0) return static_cast<std::uint16_t>(sign);
  if (std::isinf(value)) return static_cast<std::uint16_t>(sign | infinity);
  int exponent = 0;
  std::frexp(magnitude, &exponent);
  // Below the least exponent the fraction loses bits instead. A fraction that rounds up to the next
  // power of two carries into the exponent by itself.
  exponent = std::clamp(exponent - 1, 1 - bias, bias + 1);
  const double fraction = std::nearbyint(std::ldexp(magnitude, fraction_bits - exponent));
  const double bits = std::ldexp(exponent + bias - 1, fraction_bits) + fraction;
  return static_cast<std::uint16_t>(sign | (bits < infinity ? static_cast<int>(bits) : infinity));
}

}  // namespace kernel_foundry
