// The Python bindings of a device kind: the same for all, on the interface in src/device.hpp.
#pragma once

#include <pybind11/pybind11.h>

#include <cstddef>
#include <memory>
#include <string>

#include "device.hpp"

namespace kernel_foundry {

// What a device kind is made of.
struct KindFunctions {
  std::size_t (*count_devices)();
  std::shared_ptr<Device> (*open_device)(std::size_t index);
  std::shared_ptr<Compiler> (*open_compiler)(std::size_t index, const std::string& architecture);
};

// Fills module `m` with everything a device kind offers.
void bind_device_kind(pybind11::module_& m, const KindFunctions& kind);

}  // namespace kernel_foundry
