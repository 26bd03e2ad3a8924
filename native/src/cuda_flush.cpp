#include "cuda_flush.hpp"

#include <array>
#include <cstdint>

namespace kernel_foundry {
namespace {

using cuda::check;
using cuda::driver;

constexpr unsigned block = 512;
constexpr unsigned groups_of_a_unit = 4;
constexpr std::size_t word_bytes = 16;

// What a compiler made of
//
//   extern "C" __global__ void read_all(const uint4* from, uint64_t count, unsigned* written) {
//     unsigned bits = 0;
//     for (uint64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count;
//          i += gridDim.x * blockDim.x)
//       bits |= from[i].x | from[i].y | from[i].z | from[i].w;
//     if (bits != 0) *written = bits;
//   }
//
// The buffer holds zeros, so that nothing is stored unless a candidate's kernel has written there.
// As text for the driver, so that a process which only measures needs no compiler.
constexpr const char* read_all = R"(
.version 6.4
.target sm_75
.address_size 64
.visible .entry read_all(.param .u64 from, .param .u64 count, .param .u64 written)
{
  .reg .pred %p<3>;
  .reg .b32 %r<10>;
  .reg .b64 %rd<10>;
  ld.param.u64 %rd1, [from];
  ld.param.u64 %rd2, [count];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mov.u32 %r4, %nctaid.x;
  mul.wide.u32 %rd3, %r1, %r2;
  cvt.u64.u32 %rd4, %r3;
  add.s64 %rd3, %rd3, %rd4;
  mul.wide.u32 %rd5, %r4, %r2;
  cvta.to.global.u64 %rd1, %rd1;
  mov.u32 %r5, 0;
next:
  setp.ge.u64 %p1, %rd3, %rd2;
  @%p1 bra done;
  shl.b64 %rd6, %rd3, 4;
  add.s64 %rd6, %rd1, %rd6;
  ld.global.v4.u32 {%r6, %r7, %r8, %r9}, [%rd6];
  or.b32 %r6, %r6, %r7;
  or.b32 %r8, %r8, %r9;
  or.b32 %r5, %r5, %r6;
  or.b32 %r5, %r5, %r8;
  add.s64 %rd3, %rd3, %rd5;
  bra next;
done:
  setp.eq.s32 %p2, %r5, 0;
  @%p2 bra end;
  ld.param.u64 %rd7, [written];
  cvta.to.global.u64 %rd7, %rd7;
  st.global.u32 [%rd7], %r5;
end:
  ret;
}
)";

}  // namespace

CudaFlush::CudaFlush(const cuda::SharedContext& context) : context_(context) {
  cuda::Module module = nullptr;
  check(driver().module_load_data_ex(&module, read_all, 0, nullptr, nullptr),
        "cuModuleLoadDataEx of PTX");
  module_ = cuda::UniqueModule(context, module);
  check(driver().module_get_function(&kernel_, module, "read_all"), "cuModuleGetFunction");
  void* memory = nullptr;
  check(driver().mem_host_alloc(&memory, sizeof(std::uint32_t),
                                cuda::memhostalloc_portable | cuda::memhostalloc_devicemap),
        "cuMemHostAlloc");
  *static_cast<std::uint32_t*>(memory) = 0;
  written_ = cuda::UniqueHostMemory(context, memory);
  check(driver().mem_host_get_device_pointer(&written_address_, memory, 0),
        "cuMemHostGetDevicePointer");
  groups_ = groups_of_a_unit * static_cast<unsigned>(cuda::attribute_of(
                                   context->device(), cuda::device_multiprocessor_count));
}

void CudaFlush::enqueue(std::size_t size_bytes, cuda::Stream stream) {
  if (buffer_bytes_ < size_bytes) {
    buffer_.reset();
    buffer_bytes_ = 0;
    buffer_ = cuda::allocate_whole(context_, size_bytes);
    buffer_bytes_ = cuda::whole_bytes(size_bytes);
    check(driver().memset_d8_async(buffer_.get(), 0, buffer_bytes_, stream), "cuMemsetD8Async");
  }
  cuda::Address from = buffer_.get();
  std::uint64_t count = buffer_bytes_ / word_bytes;
  std::array<void*, 3> arguments = {&from, &count, &written_address_};
  check(driver().launch_kernel(kernel_, groups_, 1, 1, block, 1, 1, 0, stream, arguments.data(),
                               nullptr),
        "cuLaunchKernel of a flush");
}

void CudaFlush::check_unwritten() const {
  if (*static_cast<const volatile std::uint32_t*>(written_.get()) == 0) return;
  throw LaunchError("a kernel wrote to memory that belongs to no tensor and no scratch",
                    LaunchFault::illegal_access);
}

}  // namespace kernel_foundry
