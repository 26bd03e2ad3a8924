#include <array>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <sycl/sycl.hpp>
#include <vector>

#include "error.hpp"
#include "sycl_device.hpp"
#include "sycl_find.hpp"

namespace kernel_foundry {
namespace {

namespace syclexp = sycl::ext::oneapi::experimental;

// Without it kernels of different sub-group sizes become several modules.
constexpr const char* one_module = "-fsycl-device-code-split=off";

// The compiler refuses these as built-ins; the prelude has them as functions.
constexpr std::array own_functions = {"-fno-builtin-lround", "-fno-builtin-lroundf",
                                      "-fno-builtin-llround", "-fno-builtin-llroundf"};

// The SPIR-V that all kernels of a built bundle are in.
std::string spirv_of(const sycl::kernel_bundle<sycl::bundle_state::executable>& bundle,
                     const std::string& log) {
  if (bundle.end() - bundle.begin() != 1) {
    throw CompileError("the compiler split the kernels over several modules");
  }
  const std::vector<std::byte> bytes = bundle.begin()->ext_oneapi_get_backend_content();
  // The compiler calls it a success when its back end gave up, and mostly does not say on what.
  if (bytes.empty()) {
    throw CompileError("the compiler built no SPIR-V for these kernels, " +
                       (log.empty() ? "and says nothing of why" : "and says:\n" + log));
  }
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class SyclCompiler final : public Compiler {
 public:
  explicit SyclCompiler(const sycl::device& device)
      : context_(std::make_unique<sycl::context>(device)), architecture_(architecture_of(device)),
        version_("libsycl " + std::to_string(__LIBSYCL_MAJOR_VERSION) + "." +
                 std::to_string(__LIBSYCL_MINOR_VERSION) + "." +
                 std::to_string(__LIBSYCL_PATCH_VERSION)) {}

  [[nodiscard]] const std::string& architecture() const noexcept override { return architecture_; }
  [[nodiscard]] const std::string& version() const noexcept override { return version_; }

  [[nodiscard]] ObjectCode compile(const std::string& source,
                                   const std::vector<std::string>& options,
                                   const std::vector<std::string>& kernels) override {
    if (!context_) throw DriverError("the compiler has been released");
    if (kernels.empty()) throw CompileError("no kernel to build");
    const auto start = std::chrono::steady_clock::now();
    std::vector<std::string> all_options = options;
    all_options.emplace_back(one_module);
    all_options.insert(all_options.end(), own_functions.begin(), own_functions.end());
    std::string log;
    try {
      auto text = syclexp::create_kernel_bundle_from_source(*context_,
                                                            syclexp::source_language::sycl, source);
      auto bundle = syclexp::build(
          text, syclexp::properties{syclexp::build_options{all_options}, syclexp::save_log{&log}});
      for (const std::string& name : kernels) {
        if (!bundle.ext_oneapi_has_kernel(name)) {
          throw CompileError("the source has no kernel called " + name);
        }
      }
      std::string code = spirv_of(bundle, log);
      const std::chrono::duration<double, std::nano> spent =
          std::chrono::steady_clock::now() - start;
      return {std::move(code), "", log, spent.count()};
    } catch (const sycl::exception& error) {
      throw CompileError(log.empty() ? error.what() : log);
    }
  }

  void release() noexcept override { context_.reset(); }

 private:
  std::unique_ptr<sycl::context> context_;  // a pointer: `release` ends it before the process does
  std::string architecture_;
  std::string version_;
};

}  // namespace

std::shared_ptr<Compiler> open_sycl_compiler(std::size_t index, const std::string& architecture) {
  return with_driver([&] {
    const sycl::device device = usable_device(index);
    if (!architecture.empty() && architecture != architecture_of(device)) {
      throw std::invalid_argument("SYCL device " + std::to_string(index) + " is of \"" +
                                  architecture_of(device) + "\", not of \"" + architecture + "\"");
    }
    return std::make_shared<SyclCompiler>(device);
  });
}

}  // namespace kernel_foundry
