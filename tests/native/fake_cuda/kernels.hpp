// The kernels that the fake device can run, by name.
#pragma once

#include <string>

namespace fake_cuda {

using Result = int;

struct Kernel {
  std::string name;
  // Runs a grid of `blocks`; what it returns is the context's error from there on.
  Result (*run)(void** parameters, unsigned blocks);
};

// Null: a kernel of this name does nothing.
const Kernel* find_kernel(const std::string& name);

}  // namespace fake_cuda
