// A CUDA driver without a GPU, loaded in place of libcuda: device memory is the host's, a stream
// runs what it is given at once unless it has to wait, events read the host's clock, kernels are
// the functions of kernels.cpp. It obeys what the native layer relies on, faults that stay and
// images that are refused among it.
//
// FAKE_CUDA_DEVICES: how many devices there are (1); 0: cuInit finds none.
// FAKE_CUDA_MAJOR: its compute capability, the first number (9).
// FAKE_CUDA_MEMORY_BYTES: memory of the device (1 GiB).
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include "memory.hpp"
#include "stream.hpp"

using namespace fake_cuda;

namespace {

constexpr int driver_version = 13000;

std::size_t setting(const char* name, std::size_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// (attribute, value) of an imaginary small Hopper.
const std::map<int, int> device_attributes = {
    {1, 1024},                    // threads of a block
    {16, 4},                      // multiprocessors
    {38, 1 << 20},                // level-2 cache
    {39, 2048},                   // threads of a multiprocessor
    {76, 0},                      // compute capability, the second number
    {81, 233472},                 // shared memory of a multiprocessor
    {82, 65536},                  // registers of a multiprocessor
    {97, 232448},                 // shared memory of a block, opt-in
    {106, 32},                    // blocks of a multiprocessor
};

}  // namespace

extern "C" {

Result cuInit(unsigned) { return setting("FAKE_CUDA_DEVICES", 1) == 0 ? error_no_device : success; }
Result cuDriverGetVersion(int* version) { return *version = driver_version, success; }
Result cuGetErrorName(Result result, const char** name) {
  *name = result == error_no_device         ? "CUDA_ERROR_NO_DEVICE"
          : result == error_illegal_address ? "CUDA_ERROR_ILLEGAL_ADDRESS"
                                            : "CUDA_ERROR_FAKE";
  return success;
}
Result cuGetErrorString(Result, const char** text) { return *text = "said by the fake", success; }

Result cuDeviceGetCount(int* count) {
  return *count = static_cast<int>(setting("FAKE_CUDA_DEVICES", 1)), success;
}
Result cuDeviceGet(int* device, int index) { return *device = index, success; }
Result cuDeviceGetName(char* name, int length, int) {
  std::strncpy(name, "Fake H200", static_cast<std::size_t>(length));
  return success;
}
Result cuDeviceGetAttribute(int* value, int attribute, int) {
  if (attribute == 75) return *value = static_cast<int>(setting("FAKE_CUDA_MAJOR", 9)), success;
  const auto found = device_attributes.find(attribute);
  if (found == device_attributes.end()) return error_invalid_value;
  return *value = found->second, success;
}
Result cuDeviceTotalMem_v2(std::size_t* bytes, int) {
  return *bytes = setting("FAKE_CUDA_MEMORY_BYTES", std::size_t{1} << 30), success;
}
Result cuDeviceGetUuid_v2(char* uuid, int) { return std::memset(uuid, 0xAB, 16), success; }
Result cuDevicePrimaryCtxRetain(void** context, int) {
  static int object;
  return *context = &object, success;
}
Result cuDevicePrimaryCtxRelease_v2(int) { return success; }
Result cuCtxSetCurrent(void*) { return success; }
Result cuCtxPushCurrent_v2(void*) { return success; }
Result cuCtxPopCurrent_v2(void** context) { return *context = nullptr, success; }
Result cuCtxSetLimit(int, std::size_t) { return success; }
Result cuCtxResetPersistingL2Cache() { return success; }

Result cuMemAlloc_v2(unsigned long long* address, std::size_t bytes) {
  std::size_t total = 0;
  cuDeviceTotalMem_v2(&total, 0);
  return allocate(address, bytes, total);
}
Result cuMemFree_v2(unsigned long long address) { return release(address); }
Result cuMemGetAddressRange_v2(unsigned long long* base, std::size_t* bytes,
                               unsigned long long address) {
  return find_range(base, bytes, address);
}
Result cuMemHostAlloc(void** address, std::size_t bytes, unsigned) {
  *address = std::calloc(1, bytes);
  return *address == nullptr ? error_out_of_memory : success;
}
Result cuMemFreeHost(void* address) { return std::free(address), success; }
Result cuMemHostGetDevicePointer_v2(unsigned long long* device, void* host, unsigned) {
  return *device = reinterpret_cast<unsigned long long>(host), success;
}
Result cuIpcGetMemHandle(IpcHandle* handle, unsigned long long address) {
  return share(handle, address);
}
Result cuIpcOpenMemHandle_v2(unsigned long long* address, IpcHandle handle, unsigned) {
  return open_shared(address, handle);
}
Result cuIpcCloseMemHandle(unsigned long long address) { return release(address); }

Result cuStreamCreate(Stream** stream, unsigned) { return *stream = new Stream, success; }
Result cuStreamDestroy_v2(Stream* stream) { return delete stream, success; }
Result cuStreamSynchronize(Stream* stream) { return stream->finish(); }
Result cuStreamBeginCapture_v2(Stream* stream, int) { return stream->begin_capture(); }
Result cuStreamEndCapture(Stream* stream, Graph** graph) { return stream->end_capture(graph); }
Result cuStreamWaitValue32_v2(Stream* stream, unsigned long long address, unsigned value,
                              unsigned) {
  const auto* flag = reinterpret_cast<const volatile unsigned*>(address);
  return stream->add({[flag, value] { return *flag >= value; }, nullptr});
}
Result cuMemcpyAsync(unsigned long long to, unsigned long long from, std::size_t bytes,
                     Stream* stream) {
  return stream->add({nullptr, [=] {
                        std::memmove(reinterpret_cast<void*>(to),
                                     reinterpret_cast<const void*>(from), bytes);
                        return success;
                      }});
}
Result cuMemsetD8Async(unsigned long long address, unsigned char value, std::size_t count,
                       Stream* stream) {
  return stream->add({nullptr, [=] {
                        std::memset(reinterpret_cast<void*>(address), value, count);
                        return success;
                      }});
}
Result cuMemsetD32Async(unsigned long long address, unsigned value, std::size_t count,
                        Stream* stream) {
  return stream->add({nullptr, [=] {
                        auto* words = reinterpret_cast<unsigned*>(address);
                        std::fill(words, words + count, value);
                        return success;
                      }});
}

Result cuGraphInstantiateWithFlags(Graph** exec, Graph* graph, unsigned long long) {
  return *exec = new Graph(*graph), success;
}
Result cuGraphLaunch(Graph* exec, Stream* stream) {
  Result result = success;
  for (const Operation& operation : *exec) result = stream->add(operation);
  return result;
}
Result cuGraphDestroy(Graph* graph) { return delete graph, success; }
Result cuGraphExecDestroy(Graph* exec) { return delete exec, success; }

Result cuEventCreate(Event** event, unsigned) { return *event = new Event, success; }
Result cuEventDestroy_v2(Event* event) { return delete event, success; }
Result cuEventRecord(Event* event, Stream* stream) {
  return stream->add({nullptr, [event] {
                        event->recorded = std::chrono::steady_clock::now();
                        return success;
                      }});
}
Result cuEventElapsedTime(float* milliseconds, Event* start, Event* end) {
  *milliseconds = std::chrono::duration<float, std::milli>(end->recorded - start->recorded).count();
  return success;
}

}  // extern "C"
