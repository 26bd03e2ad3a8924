// What the compiler has no device code for, and <cmath> calls. Halves are rounded away from zero.
extern "C" inline long lroundf(float value) noexcept {
  return static_cast<long>(__builtin_roundf(value));
}
extern "C" inline long lround(double value) noexcept {
  return static_cast<long>(__builtin_round(value));
}
extern "C" inline long long llroundf(float value) noexcept {
  return static_cast<long long>(__builtin_roundf(value));
}
extern "C" inline long long llround(double value) noexcept {
  return static_cast<long long>(__builtin_round(value));
}
// By bits: the compiler would know a comparison again.
constexpr bool kernel_foundry_is_normal(float value) {
  const unsigned exponent = __builtin_bit_cast(unsigned, value) >> 23 & 0xff;
  return exponent != 0 && exponent != 0xff;
}
constexpr bool kernel_foundry_is_normal(double value) {
  const unsigned exponent = __builtin_bit_cast(unsigned long long, value) >> 52 & 0x7ff;
  return exponent != 0 && exponent != 0x7ff;
}
constexpr bool kernel_foundry_is_normal(long double value) {
  return kernel_foundry_is_normal(static_cast<double>(value));
}
#define __builtin_lround(value) ::lround(value)
#define __builtin_lroundf(value) ::lroundf(value)
#define __builtin_llround(value) ::llround(value)
#define __builtin_llroundf(value) ::llroundf(value)
#define __builtin_isnormal(value) kernel_foundry_is_normal(value)
// Slim headers instead of <sycl/sycl.hpp>, and of those what the source names: most of a build's time
// is theirs. The bits are explained in sycl_headers.py.
#ifndef KERNEL_FOUNDRY_HEADERS
#define KERNEL_FOUNDRY_HEADERS -1
#endif
#if KERNEL_FOUNDRY_HEADERS & 1
#include <sycl/detail/core.hpp>
#endif
#if KERNEL_FOUNDRY_HEADERS & 2
#include <sycl/accessor.hpp>
#endif
#if KERNEL_FOUNDRY_HEADERS & 4
#include <sycl/group_algorithm.hpp>
#endif
#if KERNEL_FOUNDRY_HEADERS & 8
#include <sycl/group_barrier.hpp>
#endif
#if KERNEL_FOUNDRY_HEADERS & 16
#include <sycl/builtins.hpp>
#endif
#if KERNEL_FOUNDRY_HEADERS & 32
#include <sycl/atomic_ref.hpp>
#endif
#if KERNEL_FOUNDRY_HEADERS & 64
#include <sycl/vector.hpp>
#endif
#include <sycl/bit_cast.hpp>
#include <sycl/half_type.hpp>
#include <sycl/ext/oneapi/bfloat16.hpp>
#include <sycl/ext/oneapi/free_function_queries.hpp>
#include <sycl/ext/oneapi/kernel_properties/properties.hpp>
#include <sycl/ext/oneapi/experimental/free_function_traits.hpp>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
namespace syclext = sycl::ext::oneapi;
namespace syclexp = sycl::ext::oneapi::experimental;
using std::int8_t;
using std::int16_t;
using std::int32_t;
using std::int64_t;
using std::size_t;
using std::uint8_t;
using std::uint16_t;
using std::uint32_t;
using std::uint64_t;
using half = sycl::half;
using bfloat16 = sycl::ext::oneapi::bfloat16;
// bfloat16's conversions are functions of a device library that the compiler in the process does
// not link: without them it gives up and says nothing. Round to nearest even, NaN stays NaN.
extern "C" SYCL_EXTERNAL inline uint16_t
__devicelib_ConvertFToBF16INTEL(const float& value) noexcept {
  const uint32_t bits = sycl::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fc0;
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}
extern "C" SYCL_EXTERNAL inline float
__devicelib_ConvertBF16ToFINTEL(const uint16_t& value) noexcept {
  return sycl::bit_cast<float>(static_cast<uint32_t>(value) << 16);
}
// The compiler calls the host's mathematics for these, which no kernel may, and gives up without a
// word over a prefetch. Round to nearest even; a hint may do nothing.
extern "C" inline long lrintf(float value) noexcept {
  return static_cast<long>(__spirv_ocl_rint(value));
}
extern "C" inline long lrint(double value) noexcept {
  return static_cast<long>(__spirv_ocl_rint(value));
}
extern "C" inline long long llrintf(float value) noexcept {
  return static_cast<long long>(__spirv_ocl_rint(value));
}
extern "C" inline long long llrint(double value) noexcept {
  return static_cast<long long>(__spirv_ocl_rint(value));
}
#define __builtin_prefetch(...) static_cast<void>(0)
#ifndef INFINITY
#define INFINITY __builtin_inff()
#endif
#ifndef NAN
#define NAN __builtin_nanf("")
#endif
