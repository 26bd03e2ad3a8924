// Runs the kernels of @NAME@ on a GPU, on inputs of its own: it is no comparison with the reference.
//
// They run twice, on outputs that hold other bytes before, and have to leave the same ones, so that
// all is written and nothing is left to chance.
#include "@NAME@.h"

#include <dlfcn.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

void* driver = nullptr;

template <typename... Arguments>
void call(const char* name, Arguments... arguments) {
  void* found = driver ? dlsym(driver, name) : nullptr;
  int (*function)(Arguments...) = nullptr;
  std::memcpy(&function, &found, sizeof function);
  const int error = function ? function(arguments...) : -1;
  if (error == 0) return;
  std::fprintf(stderr, "%s: error %d\n", name, error);
  std::exit(2);
}

void check(int error) {
  if (error == 0) return;
  std::fprintf(stderr, "%s\n", @NAME@_error());
  std::exit(1);
}

// Numbers from -1 to 1, or 0 and 1 for integers.
std::vector<char> numbers(const std::string& dtype, std::size_t count, std::size_t item_bytes) {
  std::vector<char> bytes(count * item_bytes);
  unsigned state = 1;
  for (std::size_t i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    char* item = bytes.data() + i * item_bytes;
    const float number = static_cast<float>(state >> 8) / 8388608.0f - 1.0f;
    if (dtype == "float32") {
      std::memcpy(item, &number, 4);
    } else if (dtype == "float64") {
      const double wide = number;
      std::memcpy(item, &wide, 8);
    } else if (dtype == "bfloat16") {
      std::memcpy(item, reinterpret_cast<const char*>(&number) + 2, 2);
    } else if (dtype == "float16") {
      const unsigned short half = static_cast<unsigned short>(0x3000 | (state >> 22));
      std::memcpy(item, &half, 2);
    } else if (dtype.find("float8") == std::string::npos) {
      item[0] = static_cast<char>(state >> 31);
    }
  }
  return bytes;
}

struct TestTensor {
  const char* dtype;
  std::size_t count, item_bytes;
  bool is_output;
};

const TestTensor tensors[] = {
@TENSORS@
};
const bool is_deterministic = @DETERMINISTIC@;

}  // namespace

int main() {
  @NAME@_kernels* kernels = nullptr;
  check(@NAME@_open(0, &kernels));
  driver = dlopen("libcuda.so.1", RTLD_NOW);
  void *context = nullptr, *stream = nullptr;
  call("cuInit", 0u);
  call("cuDevicePrimaryCtxRetain", &context, 0);
  call("cuCtxSetCurrent", context);
  call("cuStreamCreate", &stream, 1u);
  std::vector<unsigned long long> addresses;
  std::vector<std::vector<char>> results[2];
  for (const TestTensor& tensor : tensors) {
    const std::vector<char> bytes = numbers(tensor.dtype, tensor.count, tensor.item_bytes);
    unsigned long long address = 0;
    call("cuMemAlloc_v2", &address, bytes.size() ? bytes.size() : 1);
    call("cuMemcpyAsync", address, reinterpret_cast<unsigned long long>(bytes.data()), bytes.size(),
         stream);
    call("cuStreamSynchronize", stream);
    addresses.push_back(address);
  }
  @NAME@_call arguments = {};
@ARGUMENTS@
@PREPARE@
  for (auto& run : results) {
    for (std::size_t i = 0; i < addresses.size(); ++i) {
      const std::size_t size = tensors[i].count * tensors[i].item_bytes;
      const unsigned char poison = &run == results ? 0xaa : 0x55;
      if (tensors[i].is_output) call("cuMemsetD8Async", addresses[i], poison, size, stream);
    }
    check(@NAME@_launch(kernels, &arguments, stream));
    for (std::size_t i = 0; i < addresses.size(); ++i) {
      if (!tensors[i].is_output) continue;
      std::vector<char> bytes(tensors[i].count * tensors[i].item_bytes);
      call("cuMemcpyAsync", reinterpret_cast<unsigned long long>(bytes.data()), addresses[i],
           bytes.size(), stream);
      call("cuStreamSynchronize", stream);
      run.push_back(bytes);
    }
  }
  if (is_deterministic && results[0] != results[1]) {
    std::fprintf(stderr, "@NAME@: two runs differ, or an output is not written\n");
    return 1;
  }
  constexpr int count = 100;
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < count; ++i) check(@NAME@_launch(kernels, &arguments, stream));
  call("cuStreamSynchronize", stream);
  const std::chrono::duration<double, std::micro> taken = std::chrono::steady_clock::now() - begin;
  std::printf("@NAME@ runs: %.1f us a call\n", taken.count() / count);
  @NAME@_close(kernels);
  return 0;
}
