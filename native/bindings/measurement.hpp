// Measurement and its options as Python objects, in every module that measures.
#pragma once

#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "device.hpp"
#include "input_redraw.hpp"
#include "measure.hpp"

namespace kernel_foundry {

void bind_measurement(pybind11::module_& m);

// `Device.measure_callable`.
void bind_measuring(pybind11::classh<Device>& device);

// A `RedrawPlan` as Python gives it: the key, (dtype, bytes, number) of each tensor, and for each
// set the tensors' addresses. None: nothing is redrawn.
using RedrawRows = std::optional<
    std::tuple<std::uint64_t, std::vector<std::tuple<std::string, std::size_t, std::uint32_t>>,
               std::vector<std::vector<std::uintptr_t>>>>;

[[nodiscard]] RedrawPlan plan_of(const RedrawRows& rows);

// Measures `call(set)` by the host's clock, or by events where the device times by them. Called
// with the GIL, which it releases.
[[nodiscard]] Measurement measure_callable(std::shared_ptr<Device> device,
                                           std::function<void(std::size_t)> call,
                                           const MeasureOptions& options, std::size_t flush_bytes,
                                           const RedrawRows& redraw);

}  // namespace kernel_foundry
