// Sets a launch's arguments on a SYCL handler.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <sycl/sycl.hpp>
#include <type_traits>
#include <utility>
#include <vector>

#include "device.hpp"
#include "error.hpp"

namespace kernel_foundry {

class SyclArgumentSetter {
 public:
  SyclArgumentSetter(sycl::handler& handler, const std::vector<std::uintptr_t>& addresses)
      : handler_(handler), addresses_(addresses) {}

  void operator()(const BufferArgument& argument) {
    handler_.set_arg(next_++, reinterpret_cast<void*>(addresses_.at(argument.index)));
  }

  void operator()(const ScalarArgument& argument) {
    std::visit([&](auto value) { set_scalar(argument.type, value); }, argument.value);
  }

  // Loaded from SPIR-V a one-dimensional local accessor has become four arguments: the memory,
  // its two ranges and its offset.
  void operator()(const LocalArgument& argument) {
    const std::size_t size_bytes = argument.element_bytes * argument.count;
    handler_.set_arg(next_++, sycl::local_accessor<char, 1>(size_bytes, handler_));
    handler_.set_arg(next_++, sycl::range<1>(argument.count));
    handler_.set_arg(next_++, sycl::range<1>(argument.count));
    handler_.set_arg(next_++, sycl::id<1>(0));
  }

 private:
  template <typename Value>
  void set_scalar(const std::string& type, Value value) {
    const bool is_set =
        set_as<std::int8_t>("int8", type, value) || set_as<std::int16_t>("int16", type, value) ||
        set_as<std::int32_t>("int32", type, value) || set_as<std::int64_t>("int64", type, value) ||
        set_as<std::uint8_t>("uint8", type, value) ||
        set_as<std::uint16_t>("uint16", type, value) ||
        set_as<std::uint32_t>("uint32", type, value) ||
        set_as<std::uint64_t>("uint64", type, value) || set_as<float>("float32", type, value) ||
        set_as<double>("float64", type, value) || set_as<bool>("bool", type, value) ||
        set_as<sycl::half>("float16", type, static_cast<float>(value));
    if (!is_set) throw LaunchError("no scalar type called " + type);
  }

  template <typename T, typename Value>
  bool set_as(const char* name, const std::string& type, Value value) {
    if (type != name) return false;
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool> && std::is_integral_v<Value>) {
      if (!std::in_range<T>(value)) throw LaunchError(std::to_string(value) + " is no " + type);
    }
    handler_.set_arg(next_++, static_cast<T>(value));
    return true;
  }

  sycl::handler& handler_;
  const std::vector<std::uintptr_t>& addresses_;
  int next_ = 0;
};

inline void set_arguments(sycl::handler& handler, const Launch& launch,
                          const std::vector<std::uintptr_t>& addresses) {
  SyclArgumentSetter setter(handler, addresses);
  for (const Argument& argument : launch.arguments) std::visit(setter, argument);
}

}  // namespace kernel_foundry
