// Which SYCL devices there are, and what code for them is called.
#pragma once

#include <string>
#include <sycl/sycl.hpp>

#include "error.hpp"

namespace kernel_foundry {

// Device `index` of the usable ones; throws DriverUnavailableError.
[[nodiscard]] sycl::device usable_device(std::size_t index);

[[nodiscard]] std::string architecture_of(const sycl::device& device);

// Runs `open`; what SYCL throws becomes DriverUnavailableError.
template <typename Open>
auto with_driver(const Open& open) {
  try {
    return open();
  } catch (const sycl::exception& error) {
    throw DriverUnavailableError(error.what());
  }
}

}  // namespace kernel_foundry
