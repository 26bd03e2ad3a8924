// The CUDA driver, loaded at its first use, and the meaning of its results.
#pragma once

#include <cstddef>
#include <string>

#include "cuda_abi.hpp"
#include "error.hpp"

// Every function that we use: member, exported symbol, parameters. If the driver exports several
// versions of one, this is the oldest that suffices.
#define KERNEL_FOUNDRY_CUDA_REQUIRED(X)                                                            \
  X(init, cuInit, (unsigned flags))                                                                \
  X(driver_get_version, cuDriverGetVersion, (int* version))                                        \
  X(get_error_name, cuGetErrorName, (Result result, const char** name))                            \
  X(get_error_string, cuGetErrorString, (Result result, const char** text))                        \
  X(device_get_count, cuDeviceGetCount, (int* count))                                              \
  X(device_get, cuDeviceGet, (Ordinal * device, int index))                                        \
  X(device_get_name, cuDeviceGetName, (char* name, int length, Ordinal device))                    \
  X(device_get_attribute, cuDeviceGetAttribute, (int* value, int attribute, Ordinal device))       \
  X(device_total_mem, cuDeviceTotalMem_v2, (std::size_t* bytes, Ordinal device))                   \
  X(primary_ctx_retain, cuDevicePrimaryCtxRetain, (Context * context, Ordinal device))             \
  X(ctx_set_current, cuCtxSetCurrent, (Context context))                                           \
  X(ctx_set_limit, cuCtxSetLimit, (int limit, std::size_t value))                                  \
  X(module_load_data_ex, cuModuleLoadDataEx,                                                       \
    (Module * module, const void* image, unsigned count, int* options, void** values))             \
  X(module_unload, cuModuleUnload, (Module module))                                                \
  X(module_get_function, cuModuleGetFunction,                                                      \
    (Function * function, Module module, const char* name))                                        \
  X(func_get_attribute, cuFuncGetAttribute, (int* value, int attribute, Function function))        \
  X(func_set_attribute, cuFuncSetAttribute, (Function function, int attribute, int value))         \
  X(launch_kernel, cuLaunchKernel,                                                                 \
    (Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,       \
     unsigned block_y, unsigned block_z, unsigned shared_bytes, Stream stream, void** parameters,  \
     void** extra))                                                                                \
  X(launch_cooperative_kernel, cuLaunchCooperativeKernel,                                          \
    (Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,       \
     unsigned block_y, unsigned block_z, unsigned shared_bytes, Stream stream, void** parameters)) \
  X(mem_alloc, cuMemAlloc_v2, (Address * address, std::size_t bytes))                              \
  X(mem_free, cuMemFree_v2, (Address address))                                                     \
  X(mem_get_address_range, cuMemGetAddressRange_v2,                                                \
    (Address * base, std::size_t* bytes, Address address))                                         \
  X(mem_host_alloc, cuMemHostAlloc, (void** address, std::size_t bytes, unsigned flags))           \
  X(mem_free_host, cuMemFreeHost, (void* address))                                                 \
  X(mem_host_get_device_pointer, cuMemHostGetDevicePointer_v2,                                     \
    (Address * device, void* host, unsigned flags))                                                \
  X(memcpy_async, cuMemcpyAsync, (Address to, Address from, std::size_t bytes, Stream stream))     \
  X(memset_d8_async, cuMemsetD8Async,                                                              \
    (Address address, unsigned char value, std::size_t count, Stream stream))                      \
  X(memset_d32_async, cuMemsetD32Async,                                                            \
    (Address address, unsigned value, std::size_t count, Stream stream))                           \
  X(ipc_get_mem_handle, cuIpcGetMemHandle, (IpcHandle * handle, Address address))                  \
  X(ipc_open_mem_handle, cuIpcOpenMemHandle_v2,                                                    \
    (Address * address, IpcHandle handle, unsigned flags))                                         \
  X(ipc_close_mem_handle, cuIpcCloseMemHandle, (Address address))                                  \
  X(stream_create, cuStreamCreate, (Stream * stream, unsigned flags))                              \
  X(stream_destroy, cuStreamDestroy_v2, (Stream stream))                                           \
  X(stream_synchronize, cuStreamSynchronize, (Stream stream))                                      \
  X(stream_begin_capture, cuStreamBeginCapture_v2, (Stream stream, int mode))                      \
  X(stream_end_capture, cuStreamEndCapture, (Stream stream, Graph * graph))                        \
  X(graph_instantiate, cuGraphInstantiateWithFlags,                                                \
    (GraphExec * exec, Graph graph, unsigned long long flags))                                     \
  X(graph_launch, cuGraphLaunch, (GraphExec exec, Stream stream))                                  \
  X(graph_destroy, cuGraphDestroy, (Graph graph))                                                  \
  X(graph_exec_destroy, cuGraphExecDestroy, (GraphExec exec))                                      \
  X(event_create, cuEventCreate, (Event * event, unsigned flags))                                  \
  X(event_destroy, cuEventDestroy_v2, (Event event))                                               \
  X(event_record, cuEventRecord, (Event event, Stream stream))

// Null in drivers that lack it; every driver has at least one of the last two.
#define KERNEL_FOUNDRY_CUDA_OPTIONAL(X)                                                            \
  X(device_get_uuid, cuDeviceGetUuid_v2, (Uuid * uuid, Ordinal device))                            \
  X(ctx_reset_persisting_l2_cache, cuCtxResetPersistingL2Cache, ())                                \
  X(stream_wait_value32, cuStreamWaitValue32_v2,                                                   \
    (Stream stream, Address address, unsigned value, unsigned flags))                              \
  X(func_get_param_info, cuFuncGetParamInfo,                                                       \
    (Function function, std::size_t index, std::size_t* offset, std::size_t* bytes))               \
  X(event_elapsed_time, cuEventElapsedTime, (float* milliseconds, Event start, Event end))         \
  X(event_elapsed_time_v2, cuEventElapsedTime_v2, (float* milliseconds, Event start, Event end))

namespace kernel_foundry {
namespace cuda {

// The driver's functions; filled once and never changed, so no lock guards them.
struct Driver {
#define KERNEL_FOUNDRY_MEMBER(member, symbol, parameters) Result(*member) parameters = nullptr;
  KERNEL_FOUNDRY_CUDA_REQUIRED(KERNEL_FOUNDRY_MEMBER)
  KERNEL_FOUNDRY_CUDA_OPTIONAL(KERNEL_FOUNDRY_MEMBER)
#undef KERNEL_FOUNDRY_MEMBER
  int version = 0;  // 13000 for CUDA 13.0
};

// Loads and initialises the driver at the first call. Throws DriverUnavailableError if it cannot;
// the next call tries again. KERNEL_FOUNDRY_CUDA_DRIVER names another library.
const Driver& driver();

// Returns "call: NAME (number): text".
[[nodiscard]] std::string describe(Result result, const std::string& call);

// Returns whether a result is the candidate's fault. Any later call may report the failure of work
// that was queued earlier.
[[nodiscard]] bool is_launch_fault(Result result) noexcept;

// Throws LaunchError if a kernel failed, DriverError for any other failure.
void check(Result result, const char* call);

// The check of a candidate's launches: throws LaunchError for every failure.
void check_launch(Result result, const std::string& call);

}  // namespace cuda
}  // namespace kernel_foundry
