// Registers the native errors as Python exceptions, the same classes in every module.
#pragma once

#include <pybind11/pybind11.h>

namespace kernel_foundry {

// The classes live in kernel_foundry_native.errors, so that `except` works across modules.
void bind_errors();

}  // namespace kernel_foundry
