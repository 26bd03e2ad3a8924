// Modules and launches of the fake driver. An image is an ELF file or PTX, as the real driver takes
// them; its kernels are those whose names it holds.
#include <memory>
#include <optional>
#include <regex>
#include <string>
#include <vector>

#include "cubin.hpp"
#include "kernels.hpp"
#include "stream.hpp"

using namespace fake_cuda;

namespace {

constexpr unsigned most_threads = 1024;
constexpr int default_dynamic_shared = 48 << 10;

struct Function {
  std::string name;
  const Kernel* kernel;  // null: it does nothing
  std::vector<Parameter> parameters;
  int dynamic_shared = default_dynamic_shared;
};

struct Module {
  std::string image;
  std::vector<std::unique_ptr<Function>> functions;
};

std::string read_image(const void* image) {
  const auto* bytes = static_cast<const char*>(image);
  if (is_elf(bytes)) return read_elf(bytes);
  const std::string text = bytes;
  return text.find(".version") != std::string::npos ? text : "";
}

// The sizes of a kernel's parameters in PTX: ".param .u64 from" or ".param .b8 pass[48]".
std::optional<std::vector<Parameter>> find_ptx_parameters(const std::string& ptx,
                                                          const std::string& kernel) {
  const auto entry = ptx.find(".entry " + kernel + "(");
  if (entry == std::string::npos) return std::nullopt;
  const std::string list = ptx.substr(entry, ptx.find(')', entry) - entry);
  static const std::regex one(R"(\.param(?: \.align \d+)? \.[a-z](\d+) \w+(?:\[(\d+)\])?)");
  std::vector<Parameter> parameters;
  for (std::sregex_iterator at(list.begin(), list.end(), one), end; at != end; ++at) {
    const std::size_t count = (*at)[2].matched ? std::stoul((*at)[2]) : 1;
    parameters.push_back({0, std::stoul((*at)[1]) / 8 * count});
  }
  return parameters;
}

// Copies of a launch's arguments, which the caller may drop.
struct Arguments {
  std::vector<std::vector<char>> values;
  std::vector<void*> pointers;

  Arguments(const std::vector<Parameter>& kinds, void** parameters) {
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      const auto* from = static_cast<const char*>(parameters[i]);
      values.emplace_back(from, from + kinds[i].bytes);
    }
    for (auto& value : values) pointers.push_back(value.data());
  }
};

}  // namespace

extern "C" {

Result cuModuleLoadDataEx(Module** module, const void* image, unsigned, int*, void**) {
  if (context_fault != success) return context_fault;
  std::string read = read_image(image);
  if (read.empty()) return error_invalid_image;
  return *module = new Module{std::move(read), {}}, success;
}
Result cuModuleUnload(Module* module) { return delete module, success; }

Result cuModuleGetFunction(Function** function, Module* module, const char* name) {
  std::vector<Parameter> parameters;
  if (is_elf(module->image.data())) {
    const auto found = find_parameters(module->image, name);
    if (!found) return error_not_found;
    parameters = *found;
  } else {
    const auto found = find_ptx_parameters(module->image, name);
    if (!found) return error_not_found;
    parameters = *found;
  }
  module->functions.push_back(
      std::make_unique<Function>(Function{name, find_kernel(name), std::move(parameters)}));
  return *function = module->functions.back().get(), success;
}

Result cuFuncGetAttribute(int* value, int attribute, Function* function) {
  switch (attribute) {
  case 0: *value = most_threads; break;
  case 4: *value = 32; break;  // registers
  case 8: *value = function->dynamic_shared; break;
  default: *value = 0; break;
  }
  return success;
}
Result cuFuncSetAttribute(Function* function, int attribute, int value) {
  if (attribute == 8) {
    if (value > 232448) return error_invalid_value;
    function->dynamic_shared = value;
  }
  return success;
}
Result cuFuncGetParamInfo(Function* function, std::size_t index, std::size_t* offset,
                          std::size_t* bytes) {
  if (index >= function->parameters.size()) return error_invalid_value;
  *offset = function->parameters[index].offset;
  return *bytes = function->parameters[index].bytes, success;
}

Result cuLaunchKernel(Function* function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                      unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                      Stream* stream, void** parameters, void**) {
  const unsigned long long threads = 1ull * block_x * block_y * block_z;
  if (threads == 0 || threads > most_threads || 1ull * grid_x * grid_y * grid_z == 0 ||
      shared_bytes > static_cast<unsigned>(function->dynamic_shared)) {
    return error_invalid_value;
  }
  const Kernel* kernel = function->kernel;
  if (kernel == nullptr) return stream->add({nullptr, nullptr});
  auto arguments = std::make_shared<Arguments>(function->parameters, parameters);
  return stream->add({nullptr, [kernel, arguments, grid_x] {
                        return kernel->run(arguments->pointers.data(), grid_x);
                      }});
}

Result cuLaunchCooperativeKernel(Function* function, unsigned grid_x, unsigned grid_y,
                                 unsigned grid_z, unsigned block_x, unsigned block_y,
                                 unsigned block_z, unsigned shared_bytes, Stream* stream,
                                 void** parameters) {
  return cuLaunchKernel(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes,
                        stream, parameters, nullptr);
}

struct LaunchConfig {
  unsigned grid[3], block[3], shared_bytes;
  Stream* stream;
  void* attributes;
  unsigned attribute_count;
};

Result cuLaunchKernelEx(const LaunchConfig* config, Function* function, void** parameters, void**) {
  const auto& [grid, block, shared_bytes, stream, attributes, attribute_count] = *config;
  if (attribute_count > 0 && attributes == nullptr) return error_invalid_value;
  return cuLaunchKernel(function, grid[0], grid[1], grid[2], block[0], block[1], block[2],
                        shared_bytes, stream, parameters, nullptr);
}

}  // extern "C"
