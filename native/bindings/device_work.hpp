// What a device does for the judge and for baselines: comparison, and the measuring loop around
// Python callables.
#pragma once

#include <pybind11/pybind11.h>

#include "device.hpp"

namespace kernel_foundry {

// Adds to the class that is bound for `Device`.
void bind_device_work(pybind11::classh<Device>& device);

}  // namespace kernel_foundry
