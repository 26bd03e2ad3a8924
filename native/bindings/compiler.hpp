// Compilers and what they make as Python objects.
#pragma once

#include <pybind11/pybind11.h>

namespace kernel_foundry {

void bind_compiler(pybind11::module_& m);

}  // namespace kernel_foundry
