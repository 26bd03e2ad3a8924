#include "cuda_program.hpp"

#include <array>
#include <limits>

#include "error.hpp"

namespace kernel_foundry {
namespace {

using cuda::check;
using cuda::driver;

constexpr std::size_t default_shared_bytes = 48 << 10;  // beyond it kernels have to opt in
constexpr int portable_cluster_size = 8;

int attribute_of(cuda::Function function, cuda::FunctionAttribute attribute) {
  int value = 0;
  check(driver().func_get_attribute(&value, attribute, function), "cuFuncGetAttribute");
  return value;
}

std::size_t size_of(cuda::Function function, cuda::FunctionAttribute attribute) {
  return static_cast<std::size_t>(attribute_of(function, attribute));
}

// Lets a kernel have all the shared memory that the device has for a work-group.
std::size_t opt_in(cuda::Function function, std::size_t static_bytes, cuda::Ordinal device) {
  const auto most = static_cast<std::size_t>(
      cuda::attribute_of(device, cuda::device_max_shared_memory_per_block_optin));
  if (static_bytes > most) return 0;
  check(driver().func_set_attribute(function, cuda::function_max_dynamic_shared_size_bytes,
                                    static_cast<int>(most - static_bytes)),
        "cuFuncSetAttribute");
  return most - static_bytes;
}

// Clusters of more than 8 groups run on some devices only and have to be asked for.
void allow_large_clusters(cuda::Function function) {
  int size = 1;
  for (const auto extent :
       {cuda::function_required_cluster_width, cuda::function_required_cluster_height,
        cuda::function_required_cluster_depth}) {
    int value = 0;
    // A driver that knows no clusters has no such attribute.
    if (driver().func_get_attribute(&value, extent, function) != cuda::success) return;
    if (value > 0) size *= value;
  }
  if (size <= portable_cluster_size) return;
  check(driver().func_set_attribute(function, cuda::function_non_portable_cluster_size_allowed, 1),
        "cuFuncSetAttribute");
}

std::optional<std::vector<std::size_t>> parameters_of(cuda::Function function) {
  if (driver().func_get_param_info == nullptr) return std::nullopt;
  std::vector<std::size_t> sizes;
  for (std::size_t offset = 0, size = 0;; sizes.push_back(size)) {
    // The first index that is none is an error.
    if (driver().func_get_param_info(function, sizes.size(), &offset, &size) != cuda::success) {
      return sizes;
    }
  }
}

CudaKernel describe_kernel(cuda::Function function, const std::string& name, cuda::Ordinal device) {
  CudaKernel kernel;
  kernel.function = function;
  kernel.resources.name = name;
  kernel.resources.registers = size_of(function, cuda::function_num_regs);
  kernel.resources.shared_bytes = size_of(function, cuda::function_shared_size_bytes);
  kernel.resources.local_bytes = size_of(function, cuda::function_local_size_bytes);
  kernel.resources.max_block = size_of(function, cuda::function_max_threads_per_block);
  kernel.max_dynamic_bytes = opt_in(function, kernel.resources.shared_bytes, device);
  kernel.parameter_bytes = parameters_of(function);
  allow_large_clusters(function);
  return kernel;
}

// Shared memory and L1 are one: a kernel that needs much of it wants room for several groups.
void prefer_shared(CudaKernel& kernel, std::size_t dynamic_bytes) {
  if (kernel.prefers_shared ||
      kernel.resources.shared_bytes + dynamic_bytes <= default_shared_bytes) {
    return;
  }
  check(driver().func_set_attribute(kernel.function,
                                    cuda::function_preferred_shared_memory_carveout, 100),
        "cuFuncSetAttribute");
  kernel.prefers_shared = true;
}

unsigned narrow(std::size_t value, const std::string& kernel) {
  if (value <= std::numeric_limits<unsigned>::max()) return static_cast<unsigned>(value);
  throw LaunchError(kernel + ": " + std::to_string(value) + " is too large for a launch",
                    LaunchFault::invalid);
}

void check_resources(const CudaKernel& kernel, const Launch& launch) {
  const std::size_t items = launch.block[0] * launch.block[1] * launch.block[2];
  if (items > kernel.resources.max_block) {
    throw LaunchError(launch.kernel + " runs with up to " +
                          std::to_string(kernel.resources.max_block) +
                          " work-items of a group, not with " + std::to_string(items),
                      LaunchFault::resources);
  }
  if (launch.shared_bytes > kernel.max_dynamic_bytes) {
    throw LaunchError(launch.kernel + " may have " + std::to_string(kernel.max_dynamic_bytes) +
                          " bytes of dynamic shared memory, not " +
                          std::to_string(launch.shared_bytes),
                      LaunchFault::resources);
  }
}

}  // namespace

std::shared_ptr<CudaProgram> CudaProgram::load(const cuda::SharedContext& context,
                                               const std::string& code,
                                               const std::vector<std::string>& kernels) {
  // Anything else the driver takes for PTX, and would compile.
  if (!code.starts_with("\x7f"
                        "ELF"))
    throw LoadError("no cubin");
  std::array<char, 4096> log{};
  std::array<int, 2> options = {cuda::jit_error_log_buffer, cuda::jit_error_log_buffer_size_bytes};
  std::array<void*, 2> values = {log.data(), reinterpret_cast<void*>(log.size())};
  cuda::Module module = nullptr;
  const cuda::Result result = driver().module_load_data_ex(
      &module, code.data(), static_cast<unsigned>(options.size()), options.data(), values.data());
  if (cuda::is_launch_fault(result)) check(result, "cuModuleLoadDataEx");
  if (result != cuda::success) {
    log.back() = '\0';
    throw LoadError(cuda::describe(result, "cuModuleLoadDataEx") + " " + log.data());
  }
  cuda::UniqueModule owned(context, module);
  std::shared_ptr<CudaProgram> program(new CudaProgram(std::move(owned), kernels));
  for (const std::string& name : kernels) {
    cuda::Function function = nullptr;
    const cuda::Result found = driver().module_get_function(&function, module, name.c_str());
    if (found == cuda::error_not_found) throw LoadError("the code has no kernel called " + name);
    check(found, "cuModuleGetFunction");
    program->kernels_.push_back(describe_kernel(function, name, context->device()));
  }
  return program;
}

CudaProgram::CudaProgram(cuda::UniqueModule module, std::vector<std::string> names)
    : module_(std::move(module)), names_(std::move(names)) {}

std::vector<KernelResources> CudaProgram::resources() const {
  std::vector<KernelResources> all;
  all.reserve(kernels_.size());
  for (const CudaKernel& kernel : kernels_) all.push_back(kernel.resources);
  return all;
}

CudaKernel& CudaProgram::kernel(const std::string& name) {
  for (std::size_t i = 0; i < names_.size(); ++i) {
    if (names_[i] == name) return kernels_[i];
  }
  throw LaunchError("the program has no kernel called " + name, LaunchFault::invalid);
}

void CudaProgram::enqueue(const Launch& launch, const std::vector<std::uintptr_t>& addresses,
                          cuda::Stream stream) {
  CudaKernel& launched = kernel(launch.kernel);
  CudaArguments arguments(launch, addresses);
  // The driver would read past the end of too few.
  if (launched.parameter_bytes) {
    arguments.check_against(*launched.parameter_bytes, launch.kernel);
  }
  check_resources(launched, launch);
  prefer_shared(launched, launch.shared_bytes);
  const auto size = [&](std::size_t value) { return narrow(value, launch.kernel); };
  const auto& [gx, gy, gz] = launch.grid;
  const auto& [bx, by, bz] = launch.block;
  if (launch.cooperative) {
    cuda::check_launch(driver().launch_cooperative_kernel(
                           launched.function, size(gx), size(gy), size(gz), size(bx), size(by),
                           size(bz), size(launch.shared_bytes), stream, arguments.pointers()),
                       "cuLaunchCooperativeKernel of " + launch.kernel);
    return;
  }
  cuda::check_launch(driver().launch_kernel(launched.function, size(gx), size(gy), size(gz),
                                            size(bx), size(by), size(bz), size(launch.shared_bytes),
                                            stream, arguments.pointers(), nullptr),
                     "cuLaunchKernel of " + launch.kernel);
}

}  // namespace kernel_foundry
