#include "cuda_scrub.hpp"

#include <array>

namespace kernel_foundry {
namespace {

using cuda::check;
using cuda::driver;

constexpr unsigned block = 1024;
constexpr unsigned rounds = 2;  // should one multiprocessor get two groups and another none

// What a compiler made of
//
//   extern "C" __global__ void scrub(unsigned size_bytes) {
//     extern __shared__ volatile unsigned words[];
//     for (unsigned i = threadIdx.x; i < size_bytes / 4; i += blockDim.x) words[i] = ~0u;
//   }
//
// No number, whatever a kernel takes it for.
constexpr const char* scrub = R"(
.version 6.4
.target sm_75
.address_size 64
.extern .shared .align 16 .b8 words[];
.visible .entry scrub(.param .u32 size_bytes)
{
  .reg .pred %p<2>;
  .reg .b32 %r<7>;
  ld.param.u32 %r1, [size_bytes];
  mov.u32 %r2, %tid.x;
  mov.u32 %r3, %ntid.x;
  shl.b32 %r2, %r2, 2;
  shl.b32 %r3, %r3, 2;
  mov.u32 %r4, words;
  mov.u32 %r6, -1;
next:
  setp.ge.u32 %p1, %r2, %r1;
  @%p1 bra done;
  add.u32 %r5, %r4, %r2;
  st.volatile.shared.u32 [%r5], %r6;
  add.u32 %r2, %r2, %r3;
  bra next;
done:
  ret;
}
)";

}  // namespace

CudaScrub::CudaScrub(const cuda::SharedContext& context) {
  cuda::Module module = nullptr;
  check(driver().module_load_data_ex(&module, scrub, 0, nullptr, nullptr),
        "cuModuleLoadDataEx of PTX");
  module_ = cuda::UniqueModule(context, module);
  check(driver().module_get_function(&kernel_, module, "scrub"), "cuModuleGetFunction");
  const auto device = context->device();
  const int all = cuda::attribute_of(device, cuda::device_max_shared_memory_per_block_optin);
  check(driver().func_set_attribute(kernel_, cuda::function_max_dynamic_shared_size_bytes, all),
        "cuFuncSetAttribute of shared memory");
  shared_bytes_ = static_cast<unsigned>(all);
  groups_ =
      rounds * static_cast<unsigned>(cuda::attribute_of(device, cuda::device_multiprocessor_count));
}

void CudaScrub::enqueue(cuda::Stream stream) {
  std::array<void*, 1> arguments = {&shared_bytes_};
  check(driver().launch_kernel(kernel_, groups_, 1, 1, block, 1, 1, shared_bytes_, stream,
                               arguments.data(), nullptr),
        "cuLaunchKernel of a scrub");
}

}  // namespace kernel_foundry
