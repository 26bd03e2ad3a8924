// Launches, their arguments and sequences of them as Python objects.
#pragma once

#include <pybind11/pybind11.h>

namespace kernel_foundry {

void bind_launches(pybind11::module_& m);

}  // namespace kernel_foundry
