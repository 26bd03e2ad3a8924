#include "cuda_compiler.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <chrono>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "cuda_context.hpp"
#include "error.hpp"
#include "nvrtc.hpp"

namespace kernel_foundry {
namespace {

// From this compute capability on there is a variant of the architecture with everything that only
// this generation has, such as warp-group matrix instructions.
constexpr int first_with_variant = 90;

// 90 of "sm_90" and "sm_90a".
int capability_of(const std::string& architecture) {
  constexpr std::string_view prefix = "sm_";
  int capability = 0;
  if (architecture.starts_with(prefix)) {
    const char* end = architecture.data() + architecture.size();
    const auto [rest, error] =
        std::from_chars(architecture.data() + prefix.size(), end, capability);
    const bool is_whole = rest == end || (rest + 1 == end && (*rest == 'a' || *rest == 'f'));
    if (error == std::errc{} && is_whole) return capability;
  }
  throw std::invalid_argument("\"" + architecture + "\" is no CUDA architecture such as \"sm_90\"");
}

// What to build for, so that the code can use all that the device has.
std::string target_of(const std::string& architecture) {
  const int capability = capability_of(architecture);
  const auto& known = nvrtc::architectures();
  if (std::find(known.begin(), known.end(), capability) == known.end()) {
    std::string names;
    for (const int each : known) names += " sm_" + std::to_string(each);
    throw DriverUnavailableError(nvrtc::version() + " does not build for " + architecture +
                                 ", only for" + names);
  }
  const bool is_plain = std::isdigit(static_cast<unsigned char>(architecture.back())) != 0;
  return is_plain && capability >= first_with_variant ? architecture + "a" : architecture;
}

bool has_entry(std::string_view ptx, const std::string& kernel) {
  const std::string text = ".entry " + kernel;
  for (auto at = ptx.find(text); at != ptx.npos; at = ptx.find(text, at + 1)) {
    const char next = at + text.size() < ptx.size() ? ptx[at + text.size()] : ' ';
    if (std::isalnum(static_cast<unsigned char>(next)) == 0 && next != '_' && next != '$') {
      return true;
    }
  }
  return false;
}

bool names_standard(const std::string& option) {
  return option.starts_with("-std") || option.starts_with("--std");
}

class CudaCompiler final : public Compiler {
 public:
  explicit CudaCompiler(const std::string& architecture)
      : architecture_(architecture), target_(target_of(architecture)), version_(nvrtc::version()) {}

  [[nodiscard]] const std::string& architecture() const noexcept override { return architecture_; }
  [[nodiscard]] const std::string& version() const noexcept override { return version_; }

  [[nodiscard]] ObjectCode compile(const std::string& source,
                                   const std::vector<std::string>& options,
                                   const std::vector<std::string>& kernels) override {
    if (kernels.empty()) throw CompileError("no kernel to build");
    const auto start = std::chrono::steady_clock::now();
    nvrtc::Built built = nvrtc::build(source, all_options(options));
    for (const std::string& kernel : kernels) {
      if (!has_entry(built.ptx, kernel)) {
        throw CompileError("the source has no kernel called " + kernel +
                           " (declared extern \"C\" __global__)");
      }
    }
    if (built.cubin.empty()) throw CompileError("the compiler built no code\n" + built.log);
    const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - start;
    return {std::move(built.cubin), std::move(built.ptx), std::move(built.log), spent.count()};
  }

 private:
  [[nodiscard]] std::vector<std::string>
  all_options(const std::vector<std::string>& options) const {
    // A name of an architecture, not of a virtual one: NVRTC then makes a cubin. The log tells
    // registers and spills. Functions without an annotation are for the device: there is no host.
    std::vector<std::string> all = {"--gpu-architecture=" + target_, "-default-device", "-lineinfo",
                                    "--ptxas-options=-v"};
    if (std::none_of(options.begin(), options.end(), names_standard)) {
      all.emplace_back("-std=c++17");
    }
    all.insert(all.end(), options.begin(), options.end());
    return all;
  }

  std::string architecture_;
  std::string target_;
  std::string version_;
};

}  // namespace

std::shared_ptr<Compiler> open_cuda_compiler(std::size_t index, const std::string& architecture) {
  return std::make_shared<CudaCompiler>(
      architecture.empty() ? cuda::architecture_of(cuda::ordinal_of(index)) : architecture);
}

}  // namespace kernel_foundry
