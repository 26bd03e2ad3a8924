// Libraries that may be missing, loaded when they are first needed and never unloaded: drivers do
// not survive it.
#pragma once

#include <string>
#include <vector>

namespace kernel_foundry {

class DynamicLibrary {
 public:
  // Loads the first of `names` that there is. Throws DriverUnavailableError with what the loader
  // said of each.
  static DynamicLibrary open(const std::vector<std::string>& names);

  // Null when the library has no such symbol.
  [[nodiscard]] void* find(const char* symbol) const noexcept;
  // Throws DriverUnavailableError.
  [[nodiscard]] void* require(const char* symbol) const;
  [[nodiscard]] const std::string& name() const noexcept { return name_; }

 private:
  DynamicLibrary(void* handle, std::string name) : handle_(handle), name_(std::move(name)) {}

  void* handle_;
  std::string name_;
};

// What environment variable `variable` names, and nothing else; `names` when it is not set.
[[nodiscard]] std::vector<std::string> library_names(const char* variable,
                                                     std::vector<std::string> names);

}  // namespace kernel_foundry
