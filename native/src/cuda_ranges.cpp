#include "cuda_ranges.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

namespace kernel_foundry {
namespace {

using cuda::check;
using cuda::driver;

constexpr unsigned block = 256;
constexpr unsigned groups_to_fill = 4;                       // of a range
constexpr unsigned groups_to_read = 64;                      // whole buffers are among them
constexpr std::size_t large_bytes = std::size_t{256} << 10;  // the driver's own fill is faster
constexpr std::size_t most_ranges = 128;                     // a kernel takes 4 KiB of parameters

struct Row {
  std::uint64_t address;
  std::uint64_t size_bytes;
  std::uint32_t word;
  std::uint32_t unused;
};

// By value: a list in device memory could be rewritten by the kernels that it is about.
using Rows = std::array<Row, most_ranges>;
static_assert(sizeof(Rows) == 3072);

// What a compiler made of
//
//   struct Range { uint64_t address, size_bytes; unsigned word, unused; };
//   struct Ranges { Range all[128]; };
//
//   __device__ ... words of 16 bytes at [begin + head, begin + tail), the rest byte by byte:
//     head = min((16 - address % 16) % 16, size_bytes), tail = head + (size_bytes - head) / 16 * 16
//
//   extern "C" __global__ void fill_ranges(const Ranges ranges) {
//     const Range r = ranges.all[blockIdx.y];
//     const uint64_t first = blockIdx.x * blockDim.x + threadIdx.x;
//     for (uint64_t i = first; i < words; i += gridDim.x * blockDim.x) body[i] = {r.word, ...};
//     if (first < head) begin[first] = (unsigned char)r.word;
//     if (tail + first < r.size_bytes) begin[tail + first] = (unsigned char)r.word;
//   }
//
//   extern "C" __global__ void find_other(const Ranges ranges, unsigned* found) {
//     the same walk; bits |= what is read ^ r.word;
//     if (bits != 0) *(volatile unsigned*)found = blockIdx.y + 1;
//   }
constexpr const char* ranges_code = R"(
.version 6.4
.target sm_75
.address_size 64
.visible .entry fill_ranges(.param .align 8 .b8 ranges[3072])
{
  .reg .pred %p<5>;
  .reg .b32 %r<9>;
  .reg .b64 %rd<32>;
  mov.b64 %rd11, ranges;
  mov.u32 %r3, %ctaid.y;
  mul.wide.u32 %rd13, %r3, 24;
  add.s64 %rd14, %rd11, %rd13;
  ld.param.u32 %r1, [%rd14+16];
  ld.param.u64 %rd1, [%rd14];
  mov.u32 %r2, %ntid.x;
  mov.u32 %r4, %ctaid.x;
  mov.u32 %r5, %tid.x;
  mad.lo.s32 %r6, %r4, %r2, %r5;
  cvt.u64.u32 %rd2, %r6;
  neg.s64 %rd15, %rd1;
  and.b64 %rd16, %rd15, 15;
  ld.param.u64 %rd3, [%rd14+8];
  min.u64 %rd4, %rd16, %rd3;
  sub.s64 %rd17, %rd3, %rd4;
  shr.u64 %rd5, %rd17, 4;
  setp.le.u64 %p1, %rd5, %rd2;
  @%p1 bra fill_3;
  cvta.to.global.u64 %rd18, %rd1;
  add.s64 %rd6, %rd18, %rd4;
  mov.u32 %r7, %nctaid.x;
  mul.lo.s32 %r8, %r7, %r2;
  cvt.u64.u32 %rd7, %r8;
  mov.u64 %rd31, %rd2;
fill_2:
  shl.b64 %rd19, %rd31, 4;
  add.s64 %rd20, %rd6, %rd19;
  st.global.v4.u32 [%rd20], {%r1, %r1, %r1, %r1};
  add.s64 %rd31, %rd31, %rd7;
  setp.lt.u64 %p2, %rd31, %rd5;
  @%p2 bra fill_2;
fill_3:
  setp.le.u64 %p3, %rd4, %rd2;
  @%p3 bra fill_5;
  cvta.to.global.u64 %rd21, %rd1;
  add.s64 %rd22, %rd21, %rd2;
  st.global.u8 [%rd22], %r1;
fill_5:
  add.s64 %rd26, %rd4, %rd2;
  and.b64 %rd28, %rd17, -16;
  add.s64 %rd10, %rd26, %rd28;
  setp.ge.u64 %p4, %rd10, %rd3;
  @%p4 bra fill_7;
  cvta.to.global.u64 %rd29, %rd1;
  add.s64 %rd30, %rd29, %rd10;
  st.global.u8 [%rd30], %r1;
fill_7:
  ret;
}
.visible .entry find_other(.param .align 8 .b8 ranges[3072], .param .u64 found)
{
  .reg .pred %p<6>;
  .reg .b32 %r<62>;
  .reg .b64 %rd<46>;
  mov.b64 %rd9, ranges;
  ld.param.u64 %rd8, [found];
  mov.u32 %r10, %ctaid.y;
  mul.wide.u32 %rd11, %r10, 24;
  add.s64 %rd12, %rd9, %rd11;
  ld.param.u32 %r1, [%rd12+16];
  ld.param.u64 %rd1, [%rd12];
  cvta.to.global.u64 %rd13, %rd1;
  mov.u32 %r11, %ntid.x;
  mov.u32 %r12, %ctaid.x;
  mov.u32 %r13, %tid.x;
  mad.lo.s32 %r14, %r12, %r11, %r13;
  cvt.u64.u32 %rd14, %r14;
  neg.s64 %rd15, %rd1;
  and.b64 %rd16, %rd15, 15;
  ld.param.u64 %rd2, [%rd12+8];
  min.u64 %rd17, %rd16, %rd2;
  sub.s64 %rd18, %rd2, %rd17;
  shr.u64 %rd19, %rd18, 4;
  add.s64 %rd3, %rd13, %rd17;
  setp.le.u64 %p1, %rd19, %rd14;
  mov.u32 %r59, 0;
  @%p1 bra find_3;
  mov.u32 %r59, 0;
  mov.u32 %r36, %nctaid.x;
  mul.lo.s32 %r37, %r36, %r11;
  mov.u64 %rd45, %rd14;
find_2:
  shl.b64 %rd20, %rd45, 4;
  add.s64 %rd21, %rd3, %rd20;
  ld.global.v4.u32 {%r20, %r21, %r22, %r23}, [%rd21];
  xor.b32 %r28, %r20, %r1;
  xor.b32 %r29, %r21, %r1;
  xor.b32 %r30, %r22, %r1;
  xor.b32 %r31, %r23, %r1;
  or.b32 %r32, %r29, %r59;
  or.b32 %r33, %r32, %r28;
  or.b32 %r34, %r33, %r30;
  or.b32 %r59, %r34, %r31;
  cvt.u64.u32 %rd22, %r37;
  add.s64 %rd45, %rd45, %rd22;
  setp.lt.u64 %p2, %rd45, %rd19;
  @%p2 bra find_2;
find_3:
  setp.le.u64 %p3, %rd17, %rd14;
  @%p3 bra find_5;
  add.s64 %rd34, %rd13, %rd14;
  ld.global.u8 %r46, [%rd34];
  and.b32 %r47, %r1, 255;
  xor.b32 %r48, %r47, %r46;
  or.b32 %r59, %r48, %r59;
find_5:
  add.s64 %rd39, %rd17, %rd14;
  and.b64 %rd41, %rd18, -16;
  add.s64 %rd7, %rd39, %rd41;
  setp.ge.u64 %p4, %rd7, %rd2;
  @%p4 bra find_7;
  add.s64 %rd43, %rd13, %rd7;
  ld.global.u8 %r53, [%rd43];
  and.b32 %r54, %r1, 255;
  xor.b32 %r55, %r54, %r53;
  or.b32 %r59, %r55, %r59;
find_7:
  setp.eq.s32 %p5, %r59, 0;
  @%p5 bra find_9;
  add.s32 %r57, %r10, 1;
  cvta.to.global.u64 %rd44, %rd8;
  st.volatile.global.u32 [%rd44], %r57;
find_9:
  ret;
}
)";

std::uint32_t word_of(unsigned char byte) { return byte * 0x01010101u; }

}  // namespace

CudaRanges::CudaRanges(const cuda::SharedContext& context) {
  cuda::Module module = nullptr;
  check(driver().module_load_data_ex(&module, ranges_code, 0, nullptr, nullptr),
        "cuModuleLoadDataEx of PTX");
  module_ = cuda::UniqueModule(context, module);
  check(driver().module_get_function(&fill_, module, "fill_ranges"), "cuModuleGetFunction");
  check(driver().module_get_function(&find_, module, "find_other"), "cuModuleGetFunction");
  void* memory = nullptr;
  check(driver().mem_host_alloc(&memory, sizeof(std::uint32_t),
                                cuda::memhostalloc_portable | cuda::memhostalloc_devicemap),
        "cuMemHostAlloc");
  found_ = cuda::UniqueHostMemory(context, memory);
  check(driver().mem_host_get_device_pointer(&found_address_, memory, 0),
        "cuMemHostGetDevicePointer");
}

void CudaRanges::fill(const std::vector<ByteRange>& ranges, cuda::Stream stream) {
  std::vector<ByteRange> small;
  for (const ByteRange& range : ranges) {
    if (range.size_bytes < large_bytes) {
      if (range.size_bytes > 0) small.push_back(range);
      continue;
    }
    if (range.address % 4 == 0 && range.size_bytes % 4 == 0) {
      check(driver().memset_d32_async(range.address, word_of(range.byte), range.size_bytes / 4,
                                      stream),
            "cuMemsetD32Async");
    } else {
      check(driver().memset_d8_async(range.address, range.byte, range.size_bytes, stream),
            "cuMemsetD8Async");
    }
  }
  for (std::size_t from = 0; from < small.size(); from += most_ranges) {
    launch(fill_, small, from, groups_to_fill, false, stream);
  }
}

std::optional<std::size_t> CudaRanges::find_other(const std::vector<ByteRange>& ranges,
                                                  cuda::Stream stream) {
  auto* found = static_cast<volatile std::uint32_t*>(found_.get());
  for (std::size_t from = 0; from < ranges.size(); from += most_ranges) {
    *found = 0;
    launch(find_, ranges, from, groups_to_read, true, stream);
    check(driver().stream_synchronize(stream), "cuStreamSynchronize");
    if (*found != 0) return from + *found - 1;
  }
  return std::nullopt;
}

void CudaRanges::launch(cuda::Function function, const std::vector<ByteRange>& ranges,
                        std::size_t from, unsigned groups, bool finds, cuda::Stream stream) {
  Rows rows{};
  const std::size_t count = std::min(most_ranges, ranges.size() - from);
  for (std::size_t i = 0; i < count; ++i) {
    const ByteRange& range = ranges[from + i];
    rows[i] = {range.address, range.size_bytes, word_of(range.byte), 0};
  }
  std::array<void*, 2> arguments = {&rows, finds ? &found_address_ : nullptr};
  check(driver().launch_kernel(function, groups, static_cast<unsigned>(count), 1, block, 1, 1, 0,
                               stream, arguments.data(), nullptr),
        "cuLaunchKernel on ranges");
}

}  // namespace kernel_foundry
