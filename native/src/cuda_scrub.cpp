#include "cuda_scrub.hpp"

#include <algorithm>
#include <array>
#include <string>

namespace kernel_foundry {
namespace {

using cuda::check;
using cuda::driver;

constexpr unsigned block = 1024;
constexpr unsigned rounds = 2;  // since one multiprocessor may get two groups and another none
constexpr unsigned local_sizes = 11;
constexpr std::size_t least_local_bytes = 256;

// Registers of a work-item that are in use at once. With the few others they are the 64 that a
// work-item of a full multiprocessor can have; one more would be spilled.
constexpr unsigned held_registers = 61;

// The PTX that a compiler made of
//
//   extern "C" __global__ void scrub(unsigned size_bytes) {
//     extern __shared__ volatile unsigned words[];
//     for (unsigned i = threadIdx.x; i < size_bytes / 4; i += blockDim.x) words[i] = ~0u;
//   }
//
// but from address 0: below the shared memory that a kernel declares lies the system's own part,
// which a kernel can reach, and where data last from launch to launch. The value is NaN in every
// float format. The code after the barrier writes it into all registers, too.
constexpr const char* scrub = R"(
.version 6.4
.target sm_75
.address_size 64
.extern .shared .align 16 .b8 words[];
.visible .entry scrub(.param .u32 size_bytes)
.maxntid 1024, 1, 1
{
  .reg .pred %p<2>;
  .reg .b32 %r<7>;
  .reg .b32 %held<64>;
  ld.param.u32 %r1, [size_bytes];
  mov.u32 %r2, %tid.x;
  mov.u32 %r3, %ntid.x;
  shl.b32 %r2, %r2, 2;
  shl.b32 %r3, %r3, 2;
  mov.u32 %r4, words;
  add.u32 %r1, %r1, %r4;
  mov.u32 %r6, -1;
next:
  setp.ge.u32 %p1, %r2, %r1;
  @%p1 bra done;
  st.volatile.shared.u32 [%r2], %r6;
  add.u32 %r2, %r2, %r3;
  bra next;
done:
  bar.sync 0;
)";

// Ends `scrub`: no access passes a barrier, so all registers are in use at the second one.
std::string hold_registers() {
  std::string loads, stores;
  for (unsigned i = 0; i < held_registers; ++i) {
    const std::string at = "[%r4+" + std::to_string(4 * i) + "]";
    const std::string held = "%held" + std::to_string(i);
    loads += "  ld.volatile.shared.u32 " + held + ", " + at + ";\n";
    stores += "  st.volatile.shared.u32 " + at + ", " + held + ";\n";
  }
  return loads + "  bar.sync 0;\n" + stores + "  ret;\n}\n";
}

// Fills `bytes` of a work-item's local memory.
std::string local_entry(std::size_t bytes) {
  const std::string size = std::to_string(bytes);
  return ".visible .entry scrub_local_" + size + R"(()
.maxntid 1024, 1, 1
{
  .local .align 16 .b8 words[)" +
         size + R"(];
  .reg .pred %p<2>;
  .reg .b32 %r<2>;
  .reg .b64 %rd<3>;
  mov.u64 %rd1, words;
  cvta.local.u64 %rd1, %rd1;
  add.s64 %rd2, %rd1, )" +
         size + R"(;
  mov.u32 %r1, -1;
next:
  st.volatile.v4.u32 [%rd1], {%r1, %r1, %r1, %r1};
  add.s64 %rd1, %rd1, 16;
  setp.lt.u64 %p1, %rd1, %rd2;
  @%p1 bra next;
  ret;
}
)";
}

std::string code() {
  std::string text = scrub + hold_registers();
  for (unsigned i = 0; i < local_sizes; ++i) text += local_entry(least_local_bytes << i);
  return text;
}

}  // namespace

CudaScrub::CudaScrub(const cuda::SharedContext& context) {
  cuda::Module module = nullptr;
  check(driver().module_load_data_ex(&module, code().c_str(), 0, nullptr, nullptr),
        "cuModuleLoadDataEx of PTX");
  module_ = cuda::UniqueModule(context, module);
  check(driver().module_get_function(&kernel_, module, "scrub"), "cuModuleGetFunction");
  const auto device = context->device();
  const int all = cuda::attribute_of(device, cuda::device_max_shared_memory_per_block_optin);
  check(driver().func_set_attribute(kernel_, cuda::function_max_dynamic_shared_size_bytes, all),
        "cuFuncSetAttribute of shared memory");
  shared_bytes_ = static_cast<unsigned>(all);
  for (unsigned i = 0; i < local_sizes; ++i) {
    const std::string name = "scrub_local_" + std::to_string(least_local_bytes << i);
    cuda::Function function = nullptr;
    check(driver().module_get_function(&function, module, name.c_str()), "cuModuleGetFunction");
    local_kernels_.push_back(function);
  }
  const auto units =
      static_cast<unsigned>(cuda::attribute_of(device, cuda::device_multiprocessor_count));
  const auto items = static_cast<unsigned>(
      cuda::attribute_of(device, cuda::device_max_threads_per_multiprocessor));
  groups_ = rounds * units;
  local_groups_ = rounds * units * std::max(items / block, 1u);
}

void CudaScrub::cover_local(std::size_t bytes) {
  for (unsigned i = 0; bytes > 0 && i < local_sizes; ++i) {
    if (bytes > least_local_bytes << i) continue;
    local_count_ = std::max(local_count_, i + 1);
    return;
  }
  if (bytes == 0) return;
  throw LoadError("a work-item may have at most " +
                  std::to_string(least_local_bytes << (local_sizes - 1)) +
                  " bytes of local memory, not " + std::to_string(bytes));
}

void CudaScrub::enqueue(cuda::Stream stream) {
  std::array<void*, 1> arguments = {&shared_bytes_};
  check(driver().launch_kernel(kernel_, groups_, 1, 1, block, 1, 1, shared_bytes_, stream,
                               arguments.data(), nullptr),
        "cuLaunchKernel of a scrub");
  if (local_count_ == 0) return;
  // Its local memory is as large as that of the candidate's own kernels on a full device.
  cuda::check_launch(driver().launch_kernel(local_kernels_[local_count_ - 1], local_groups_, 1, 1,
                                            block, 1, 1, 0, stream, nullptr, nullptr),
                     "cuLaunchKernel of a scrub of local memory");
}

}  // namespace kernel_foundry
