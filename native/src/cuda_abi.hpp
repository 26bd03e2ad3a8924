// The part of the CUDA driver's binary interface that is used here, declared by hand: the build
// needs no toolkit. Never include it together with cuda.h, whose macros rename the functions.
#pragma once

namespace kernel_foundry::cuda {

using Result = int;
using Ordinal = int;
using Address = unsigned long long;
using Context = struct ContextObject*;
using Module = struct ModuleObject*;
using Function = struct FunctionObject*;
using Stream = struct StreamObject*;
using Event = struct EventObject*;
using Graph = struct GraphObject*;
using GraphExec = struct GraphExecObject*;

struct Uuid {
  char bytes[16];
};

struct IpcHandle {
  char bytes[64];
};

enum : Result {
  success = 0,
  error_invalid_value = 1,
  error_out_of_memory = 2,
  error_not_found = 500,
  error_illegal_address = 700,
  error_launch_out_of_resources = 701,
  error_launch_timeout = 702,
  error_assert = 710,
  error_hardware_stack_error = 714,
  error_illegal_instruction = 715,
  error_misaligned_address = 716,
  error_invalid_address_space = 717,
  error_invalid_pc = 718,
  error_launch_failed = 719,
  error_cooperative_launch_too_large = 720,
  error_tensor_memory_leak = 721,
  error_invalid_cluster_size = 912,
};

enum DeviceAttribute : int {
  device_max_threads_per_block = 1,
  device_multiprocessor_count = 16,
  device_l2_cache_size = 38,
  device_max_threads_per_multiprocessor = 39,
  device_compute_capability_major = 75,
  device_compute_capability_minor = 76,
  device_max_shared_memory_per_multiprocessor = 81,
  device_max_registers_per_multiprocessor = 82,
  device_max_shared_memory_per_block_optin = 97,
  device_max_blocks_per_multiprocessor = 106,
};

enum FunctionAttribute : int {
  function_max_threads_per_block = 0,
  function_shared_size_bytes = 1,
  function_local_size_bytes = 3,
  function_num_regs = 4,
  function_max_dynamic_shared_size_bytes = 8,
  function_preferred_shared_memory_carveout = 9,  // in percent
  function_required_cluster_width = 11,
  function_required_cluster_height = 12,
  function_required_cluster_depth = 13,
  function_non_portable_cluster_size_allowed = 14,
};

enum : unsigned {
  stream_non_blocking = 1,
  event_default = 0,
  memhostalloc_portable = 1,
  memhostalloc_devicemap = 2,
  ipc_lazy_enable_peer_access = 1,
  stream_wait_value_geq = 0,
};

enum : int {
  limit_persisting_l2_cache_size = 6,
  stream_capture_mode_relaxed = 2,
  jit_error_log_buffer = 5,
  jit_error_log_buffer_size_bytes = 6,
};

}  // namespace kernel_foundry::cuda
