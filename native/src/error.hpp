// Errors of the native layer. The candidate's faults (compile, load, launch) have types of their
// own, so that Python can turn them into outcomes without reading a message.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace kernel_foundry {

class NativeError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The driver, its library or a device is not there; the text is the loader's own.
class DriverUnavailableError : public NativeError {
 public:
  using NativeError::NativeError;
};

// The driver or the operating system refused a call of ours.
class DriverError : public NativeError {
 public:
  using NativeError::NativeError;
};

// The driver or the operating system has no memory left for a call of ours.
class OutOfMemoryError : public DriverError {
 public:
  using DriverError::DriverError;
};

// The source does not compile; the text is the compiler's log.
class CompileError : public NativeError {
 public:
  using NativeError::NativeError;
};

// Object code that the driver does not take.
class LoadError : public NativeError {
 public:
  using NativeError::NativeError;
};

// Cause of a failed launch, as far as the driver reports it.
enum class LaunchFault { other, illegal_access, resources, invalid };

// A launch that the driver refused, or work that failed on the device.
class LaunchError : public NativeError {
 public:
  explicit LaunchError(const std::string& text, LaunchFault fault = LaunchFault::other)
      : NativeError(text), fault_(fault) {}
  [[nodiscard]] LaunchFault fault() const noexcept { return fault_; }

 private:
  LaunchFault fault_;
};

}  // namespace kernel_foundry
