// The CUDA driver, found when the program runs: no toolkit and no -lcuda is needed to build this.
#pragma once

#include <dlfcn.h>

#include "recorder.hpp"

// The driver's interface, as far as it is used here; its own header calls these by macros.
struct Driver {
  using Result = int;
  using Handle = void*;
  using Address = unsigned long long;

  Result (*init)(unsigned);
  Result (*error_name)(Result, const char**);
  Result (*device_get)(int*, int);
  Result (*device_attribute)(int*, int, int);
  Result (*context_retain)(Handle*, int);
  Result (*context_release)(int);
  Result (*context_push)(Handle);
  Result (*context_pop)(Handle*);
  Result (*module_load)(Handle*, const void*, unsigned, int*, void**);
  Result (*module_unload)(Handle);
  Result (*module_function)(Handle*, Handle, const char*);
  Result (*function_attribute)(int*, int, Handle);
  Result (*function_set)(Handle, int, int);
  Result (*allocate)(Address*, std::size_t);
  Result (*free)(Address);
  Result (*fill)(Address, unsigned char, std::size_t, Handle);
  Result (*launch)(Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                   Handle, void**, void**);
  Result (*launch_cooperative)(Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                               unsigned, Handle, void**);

  // The driver of this program; throws where there is none.
  static const Driver& instance() {
    static const Driver found;
    return found;
  }

  void check(Result error, const char* call) const {
    if (error == 0) return;
    const char* name = nullptr;
    error_name(error, &name);
    throw Refusal(std::string(call) + ": " + (name ? name : "unknown error") + " (" +
                  std::to_string(error) + ")");
  }

 private:
  Driver() {
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw Refusal(std::string("no CUDA driver: ") + dlerror());
    find(library, "cuInit", init);
    find(library, "cuGetErrorName", error_name);
    find(library, "cuDeviceGet", device_get);
    find(library, "cuDeviceGetAttribute", device_attribute);
    find(library, "cuDevicePrimaryCtxRetain", context_retain);
    find(library, "cuDevicePrimaryCtxRelease_v2", context_release);
    find(library, "cuCtxPushCurrent_v2", context_push);
    find(library, "cuCtxPopCurrent_v2", context_pop);
    find(library, "cuModuleLoadDataEx", module_load);
    find(library, "cuModuleUnload", module_unload);
    find(library, "cuModuleGetFunction", module_function);
    find(library, "cuFuncGetAttribute", function_attribute);
    find(library, "cuFuncSetAttribute", function_set);
    find(library, "cuMemAlloc_v2", allocate);
    find(library, "cuMemFree_v2", free);
    find(library, "cuMemsetD8Async", fill);
    find(library, "cuLaunchKernel", launch);
    find(library, "cuLaunchCooperativeKernel", launch_cooperative);
    check(init(0), "cuInit");
  }

  template <typename Function>
  static void find(void* library, const char* name, Function& function) {
    void* found = dlsym(library, name);
    if (found == nullptr) throw Refusal(std::string("the CUDA driver has no ") + name);
    std::memcpy(&function, &found, sizeof function);
  }
};

// Makes a context the current one, and the caller's again at its end.
class CurrentContext {
 public:
  explicit CurrentContext(Driver::Handle context) {
    const Driver& driver = Driver::instance();
    driver.check(driver.context_push(context), "cuCtxPushCurrent");
  }
  ~CurrentContext() {
    Driver::Handle popped = nullptr;
    Driver::instance().context_pop(&popped);
  }
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;
};

// Memory of the GPU. It is freed in the context that is current then.
class DeviceMemory {
 public:
  explicit DeviceMemory(std::int64_t bytes) {
    const Driver& driver = Driver::instance();
    driver.check(driver.allocate(&address_, static_cast<std::size_t>(bytes)), "cuMemAlloc");
  }
  ~DeviceMemory() {
    if (address_ != 0) Driver::instance().free(address_);
  }
  DeviceMemory(DeviceMemory&& other) noexcept : address_(std::exchange(other.address_, 0)) {}
  DeviceMemory& operator=(DeviceMemory&&) = delete;

  Driver::Address address() const { return address_; }

 private:
  Driver::Address address_ = 0;
};
