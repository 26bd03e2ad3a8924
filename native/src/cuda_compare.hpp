// compare.hpp on memory of a CUDA device, at the speed of that memory.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "compare.hpp"
#include "device.hpp"

namespace kernel_foundry {

// Its kernels are built on first use, one program for each element type, and kept. All results are
// those of `compare` and `same_bytes` on the host, to the last bit.
class CudaComparer {
 public:
  struct Element {
    const char* dtype;        // as torch calls it
    const char* device_type;  // as the device code calls it
    std::size_t size_bytes;
  };
  using Compile =
      std::function<ObjectCode(const std::string& source, const std::vector<std::string>& kernels)>;
  // Copies from the device to the host, complete when it returns.
  using Read = std::function<void(void* to, std::uintptr_t from, std::size_t size_bytes)>;

  // `device` outlives it.
  CudaComparer(Device& device, Compile compile, Read read);

  [[nodiscard]] Comparison compare(std::uintptr_t actual, std::uintptr_t expected,
                                   const CompareOptions& options);
  [[nodiscard]] bool same_bytes(std::uintptr_t a, std::uintptr_t b, std::size_t size_bytes);

 private:
  [[nodiscard]] std::shared_ptr<Program> program(const Element& element);
  // Runs a kernel on (a, b, further, what it found), then `scalars`.
  void run(const Element& element, const std::string& kernel, std::size_t size_bytes,
           const std::vector<std::uintptr_t>& addresses, const std::vector<Argument>& scalars);

  Device& device_;
  Compile compile_;
  Read read_;
  std::mutex one_at_a_time_;
  std::map<std::string, std::shared_ptr<Program>> programs_;  // by element type
  std::unique_ptr<Buffer> found_;
};

}  // namespace kernel_foundry
