// Measurement and its options as Python objects, in every module that measures.
#pragma once

#include <pybind11/pybind11.h>

namespace kernel_foundry {

void bind_measurement(pybind11::module_& m);

}  // namespace kernel_foundry
