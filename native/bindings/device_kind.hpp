// The Python face of a device kind: the same for all, over the seam in src/device.hpp.
#pragma once

#include <pybind11/pybind11.h>

#include <cstddef>
#include <memory>

#include "device.hpp"

namespace kernel_foundry {

using OpenDevice = std::shared_ptr<Device> (*)(std::size_t index);
using CountDevices = std::size_t (*)();

// Fills module `m` with everything a device kind offers.
void bind_device_kind(pybind11::module_& m, OpenDevice open, CountDevices count);

}  // namespace kernel_foundry
