#include "dynamic_library.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <utility>

#include "error.hpp"

namespace kernel_foundry {

DynamicLibrary DynamicLibrary::open(const std::vector<std::string>& names) {
  std::string tried;
  for (const std::string& name : names) {
    if (void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) return {handle, name};
    const char* reason = dlerror();
    if (!tried.empty()) tried += "; ";
    tried += reason != nullptr ? reason : name;
  }
  throw DriverUnavailableError(tried);
}

void* DynamicLibrary::find(const char* symbol) const noexcept { return dlsym(handle_, symbol); }

void* DynamicLibrary::require(const char* symbol) const {
  if (void* found = find(symbol)) return found;
  throw DriverUnavailableError(name_ + " is too old: it has no " + symbol);
}

std::vector<std::string> library_names(const char* variable, std::vector<std::string> names) {
  const char* named = std::getenv(variable);
  if (named == nullptr || *named == '\0') return names;
  return {named};
}

}  // namespace kernel_foundry
