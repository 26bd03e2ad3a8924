// Kernels of a cubin, loaded on a CUDA device.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cuda_arguments.hpp"
#include "cuda_context.hpp"
#include "device.hpp"

namespace kernel_foundry {

struct CudaKernel {
  cuda::Function function = nullptr;
  KernelResources resources;
  std::size_t max_dynamic_bytes = 0;  // of shared memory that a launch may ask for
  std::optional<std::vector<std::size_t>> parameter_bytes;  // unknown to older drivers
  bool prefers_shared = false;
};

class CudaProgram final : public Program {
 public:
  // Throws LoadError.
  static std::shared_ptr<CudaProgram> load(const cuda::SharedContext& context,
                                           const std::string& code,
                                           const std::vector<std::string>& kernels);

  [[nodiscard]] const std::vector<std::string>& kernel_names() const noexcept override {
    return names_;
  }
  [[nodiscard]] std::vector<KernelResources> resources() const override;

  // Throws LaunchError.
  void enqueue(const Launch& launch, const std::vector<std::uintptr_t>& addresses,
               cuda::Stream stream);

 private:
  CudaProgram(cuda::UniqueModule module, std::vector<std::string> names);
  [[nodiscard]] CudaKernel& kernel(const std::string& name);

  cuda::UniqueModule module_;
  std::vector<std::string> names_;
  std::vector<CudaKernel> kernels_;
};

}  // namespace kernel_foundry
