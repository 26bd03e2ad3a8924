#include "sycl_scrub.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "sycl_arguments.hpp"
#include "sycl_scrub_spirv.hpp"

namespace kernel_foundry {
namespace {

namespace syclexp = sycl::ext::oneapi::experimental;

constexpr std::size_t block = 64;
constexpr std::size_t groups_of_a_unit = 2;

// Of the SPIR-V specification, 2.3 and 3.
constexpr std::size_t header_words = 5;
constexpr std::uint32_t type_pointer = 32;
constexpr std::uint32_t storage_workgroup = 4;

}  // namespace

bool SyclScrub::is_needed_by(const std::string& code) {
  std::vector<std::uint32_t> words(code.size() / sizeof(std::uint32_t));
  std::memcpy(words.data(), code.data(), words.size() * sizeof(std::uint32_t));
  for (std::size_t at = header_words; at + 2 < words.size();) {
    const std::size_t length = words[at] >> 16;
    if ((words[at] & 0xFFFF) == type_pointer && words[at + 2] == storage_workgroup) return true;
    if (length == 0) return true;  // none that can be read: better once too often
    at += length;
  }
  return false;
}

SyclScrub::SyclScrub(sycl::queue& queue)
    : groups_(groups_of_a_unit *
              queue.get_device().get_info<sycl::info::device::max_compute_units>()),
      words_(queue.get_device().get_info<sycl::info::device::local_mem_size>() /
             sizeof(std::uint32_t)) {
  const auto* bytes = reinterpret_cast<const std::byte*>(sycl_scrub_spirv.data());
  auto object = syclexp::create_kernel_bundle_from_source(
      queue.get_context(), syclexp::source_language::spirv,
      std::vector<std::byte>(bytes, bytes + sizeof(sycl_scrub_spirv)));
  kernel_ = syclexp::build(object).ext_oneapi_get_kernel("__sycl_kernel_scrub");
}

void SyclScrub::enqueue(sycl::queue& queue) {
  queue.submit([&](sycl::handler& handler) {
    const std::vector<std::uintptr_t> no_buffers;
    SyclArgumentSetter set(handler, no_buffers);
    set(LocalArgument{sizeof(std::uint32_t), words_});
    set(ScalarArgument{"int32", static_cast<std::int64_t>(words_)});
    handler.parallel_for(sycl::nd_range<1>(groups_ * block, block), *kernel_);
  });
}

}  // namespace kernel_foundry
