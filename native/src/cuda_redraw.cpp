#include "cuda_redraw.hpp"

#include <algorithm>
#include <array>

#include "cuda_redraw_ptx.inc"
#include "redraw_tensor.hpp"

namespace kernel_foundry {
namespace {

using cuda::check;
using cuda::driver;

constexpr unsigned block = 256;
constexpr unsigned groups_of_a_unit = 8;

}  // namespace

CudaRedraw::CudaRedraw(const cuda::SharedContext& context) {
  cuda::Module module = nullptr;
  check(driver().module_load_data_ex(&module, cuda_redraw_ptx, 0, nullptr, nullptr),
        "cuModuleLoadDataEx of PTX");
  module_ = cuda::UniqueModule(context, module);
  check(driver().module_get_function(&kernel_, module, "redraw_tensor"), "cuModuleGetFunction");
  check(driver().module_get_function(&mask_, module, "mask_ranges"), "cuModuleGetFunction");
  most_groups_ = groups_of_a_unit * static_cast<unsigned>(cuda::attribute_of(
                                        context->device(), cuda::device_multiprocessor_count));
}

void CudaRedraw::enqueue(std::uintptr_t address, const RedrawPass& pass, cuda::Stream stream) {
  if (pass.undo_index == pass.apply_index || pass.size_bytes == 0) return;
  if (pass.mantissa_bits != 0) {
    launch(address, pass, stream);
    return;
  }
  for (const RedrawPass& one : order_passes(pass)) launch(address, one, stream);
}

void CudaRedraw::mask(const std::vector<CoveredRange>& ranges, std::uint64_t key,
                      cuda::Stream stream) {
  for (std::size_t from = 0; from < ranges.size(); from += MaskedRanges::most) {
    MaskedRanges rows{};
    rows.key = key;
    rows.first = static_cast<unsigned>(from);
    rows.count =
        static_cast<unsigned>(std::min<std::size_t>(MaskedRanges::most, ranges.size() - from));
    std::size_t largest = 0;
    for (unsigned i = 0; i < rows.count; ++i) {
      const CoveredRange& range = ranges[from + i];
      rows.all[i] = {range.address, range.size_bytes};
      largest = std::max(largest, range.size_bytes);
    }
    std::array<void*, 1> arguments = {&rows};
    const std::uint64_t groups = largest / redraw::block_bytes / block + 1;
    check(driver().launch_kernel(
              mask_, static_cast<unsigned>(std::min<std::uint64_t>(groups, most_groups_)),
              rows.count, 1, block, 1, 1, 0, stream, arguments.data(), nullptr),
          "cuLaunchKernel of a mask");
  }
}

void CudaRedraw::launch(std::uintptr_t address, RedrawPass pass, cuda::Stream stream) {
  cuda::Address data = address;
  std::array<void*, 2> arguments = {&data, &pass};
  const std::uint64_t groups = pass.size_bytes / redraw::block_bytes / block + 1;
  check(driver().launch_kernel(kernel_,
                               static_cast<unsigned>(std::min<std::uint64_t>(groups, most_groups_)),
                               1, 1, block, 1, 1, 0, stream, arguments.data(), nullptr),
        "cuLaunchKernel of a redraw");
}

}  // namespace kernel_foundry
