// Measurement and its options as Python objects, in every module that measures.
#pragma once

#include <pybind11/pybind11.h>

#include <cstddef>
#include <functional>
#include <memory>

#include "device.hpp"
#include "measure.hpp"

namespace kernel_foundry {

void bind_measurement(pybind11::module_& m);

// `Device.measure_callable`.
void bind_measuring(pybind11::classh<Device>& device);

// Measures `call(set)` by the host's clock, or by events where the device times by them. Called
// with the GIL, which it releases.
[[nodiscard]] Measurement measure_callable(std::shared_ptr<Device> device,
                                           std::function<void(std::size_t)> call,
                                           const MeasureOptions& options, std::size_t flush_bytes);

}  // namespace kernel_foundry
