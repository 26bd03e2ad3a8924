#include "nvrtc.hpp"

#include <dlfcn.h>

#include <array>
#include <cstddef>
#include <filesystem>

#include "cuda_standard_headers.hpp"
#include "dynamic_library.hpp"
#include "error.hpp"

// Every function used, declared by hand: member, exported symbol, parameters.
#define KERNEL_FOUNDRY_NVRTC_FUNCTIONS(X)                                                          \
  X(version, nvrtcVersion, (int* major, int* minor))                                               \
  X(get_num_supported_archs, nvrtcGetNumSupportedArchs, (int* count))                              \
  X(get_supported_archs, nvrtcGetSupportedArchs, (int* architectures))                             \
  X(create_program, nvrtcCreateProgram,                                                            \
    (Program * program, const char* source, const char* name, int header_count,                    \
     const char* const* headers, const char* const* header_names))                                 \
  X(destroy_program, nvrtcDestroyProgram, (Program * program))                                     \
  X(compile_program, nvrtcCompileProgram,                                                          \
    (Program program, int option_count, const char* const* options))                               \
  X(get_ptx_size, nvrtcGetPTXSize, (Program program, std::size_t* bytes))                          \
  X(get_ptx, nvrtcGetPTX, (Program program, char* to))                                             \
  X(get_cubin_size, nvrtcGetCUBINSize, (Program program, std::size_t* bytes))                      \
  X(get_cubin, nvrtcGetCUBIN, (Program program, char* to))                                         \
  X(get_log_size, nvrtcGetProgramLogSize, (Program program, std::size_t* bytes))                   \
  X(get_log, nvrtcGetProgramLog, (Program program, char* to))

namespace kernel_foundry::nvrtc {
namespace {

using Result = int;
using Program = struct ProgramObject*;

enum : Result {
  success = 0,
  error_out_of_memory = 1,
  error_builtin_operation_failure = 7,
};

struct Functions {
#define KERNEL_FOUNDRY_MEMBER(member, symbol, parameters) Result(*member) parameters = nullptr;
  KERNEL_FOUNDRY_NVRTC_FUNCTIONS(KERNEL_FOUNDRY_MEMBER)
#undef KERNEL_FOUNDRY_MEMBER
  const char* (*get_error_string)(Result result) = nullptr;
  int major = 0;
  int minor = 0;
  std::vector<int> architectures;
};

// NVRTC opens a library of its own by name alone and does not look beside itself. Loaded by its
// path before, the loader knows the name.
void load_builtins(const Functions& loaded) {
  Dl_info found{};
  if (dladdr(reinterpret_cast<void*>(loaded.version), &found) == 0) return;
  const auto folder = std::filesystem::path(found.dli_fname).parent_path();
  const std::string name =
      "libnvrtc-builtins.so." + std::to_string(loaded.major) + "." + std::to_string(loaded.minor);
  // Elsewhere the system's loader finds it; else the first build says what is missing.
  dlopen((folder / name).c_str(), RTLD_NOW | RTLD_LOCAL);
}

Functions load() {
  const DynamicLibrary library = DynamicLibrary::open(
      library_names("KERNEL_FOUNDRY_NVRTC", {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"}));
  Functions loaded;
#define KERNEL_FOUNDRY_REQUIRE(member, symbol, parameters)                                         \
  loaded.member = reinterpret_cast<decltype(loaded.member)>(library.require(#symbol));
  KERNEL_FOUNDRY_NVRTC_FUNCTIONS(KERNEL_FOUNDRY_REQUIRE)
#undef KERNEL_FOUNDRY_REQUIRE
  loaded.get_error_string =
      reinterpret_cast<decltype(loaded.get_error_string)>(library.require("nvrtcGetErrorString"));
  loaded.version(&loaded.major, &loaded.minor);
  int count = 0;
  loaded.get_num_supported_archs(&count);
  loaded.architectures.resize(static_cast<std::size_t>(count));
  loaded.get_supported_archs(loaded.architectures.data());
  load_builtins(loaded);
  return loaded;
}

const Functions& functions() {
  static const Functions loaded = load();
  return loaded;
}

void check(Result result, const char* call) {
  if (result == success) return;
  throw DriverError(std::string(call) + ": " + functions().get_error_string(result));
}

class OwnedProgram {
 public:
  explicit OwnedProgram(const std::string& source) {
    std::array<const char*, standard_headers.size()> names{}, texts{};
    for (std::size_t i = 0; i < standard_headers.size(); ++i) {
      names[i] = standard_headers[i].name;
      texts[i] = standard_headers[i].text;
    }
    check(functions().create_program(&program_, source.c_str(), "candidate.cu",
                                     static_cast<int>(names.size()), texts.data(), names.data()),
          "nvrtcCreateProgram");
  }
  ~OwnedProgram() { functions().destroy_program(&program_); }
  OwnedProgram(const OwnedProgram&) = delete;
  OwnedProgram& operator=(const OwnedProgram&) = delete;
  [[nodiscard]] Program get() const noexcept { return program_; }

 private:
  Program program_ = nullptr;
};

std::string fetch(Program program, Result (*size)(Program, std::size_t*),
                  Result (*get)(Program, char*), const char* call) {
  std::size_t size_bytes = 0;
  check(size(program, &size_bytes), call);
  std::string bytes(size_bytes, '\0');
  if (size_bytes > 0) check(get(program, bytes.data()), call);
  return bytes;
}

// Text ends with a zero, and a log has more of them: between what the assembler reports and why it
// refuses.
std::string fetch_text(Program program, Result (*size)(Program, std::size_t*),
                       Result (*get)(Program, char*), const char* call) {
  std::string text = fetch(program, size, get, call);
  std::erase(text, '\0');
  return text;
}

}  // namespace

const std::vector<int>& architectures() { return functions().architectures; }

std::string version() {
  return "nvrtc " + std::to_string(functions().major) + "." + std::to_string(functions().minor);
}

Built build(const std::string& source, const std::vector<std::string>& options) {
  const Functions& nvrtc = functions();
  const OwnedProgram program(source);
  std::vector<const char*> texts;
  texts.reserve(options.size());
  for (const std::string& option : options) texts.push_back(option.c_str());
  const Result result =
      nvrtc.compile_program(program.get(), static_cast<int>(texts.size()), texts.data());
  Built built;
  built.log = fetch_text(program.get(), nvrtc.get_log_size, nvrtc.get_log, "nvrtcGetProgramLog");
  if (result == error_out_of_memory || result == error_builtin_operation_failure) {
    throw DriverError(std::string(nvrtc.get_error_string(result)) + ": " + built.log);
  }
  if (result != success) {
    throw CompileError(built.log.empty() ? nvrtc.get_error_string(result) : built.log);
  }
  built.cubin = fetch(program.get(), nvrtc.get_cubin_size, nvrtc.get_cubin, "nvrtcGetCUBIN");
  built.ptx = fetch_text(program.get(), nvrtc.get_ptx_size, nvrtc.get_ptx, "nvrtcGetPTX");
  return built;
}

}  // namespace kernel_foundry::nvrtc
