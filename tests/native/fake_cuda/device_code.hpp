// Runs device code on the host: the words of CUDA that our own kernels use. A block is one
// work-item, which makes shuffles and votes trivial; blocks run one after the other.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#define __device__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(count)
// The one instruction that is written as such: half to float.
#define asm(...) wide = half_to_float(x.bits)

namespace device_code {

struct Index {
  unsigned x = 0, y = 0;
};
inline thread_local Index blockIdx, threadIdx, gridDim;
inline constexpr Index blockDim{1};

struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};

using std::fabs;

inline float half_to_float(unsigned short bits) {
  const float sign = (bits & 0x8000) != 0 ? -1.0f : 1.0f;
  const int exponent = (bits >> 10) & 0x1F;
  const auto fraction = static_cast<float>(bits & 0x3FF);
  if (exponent == 31) return fraction == 0 ? sign * INFINITY : NAN;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(fraction + 1024, exponent - 25);
}

inline float __uint_as_float(unsigned bits) { return std::bit_cast<float>(bits); }
inline long long __double_as_longlong(double x) { return std::bit_cast<long long>(x); }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>((1ull * a * b) >> 32);
}
// No other lane has found anything.
inline unsigned long long __shfl_xor_sync(unsigned, unsigned long long, unsigned) { return 0; }
inline bool __any_sync(unsigned, bool found) { return found; }
inline void atomicAdd(unsigned long long* to, unsigned long long value) { *to += value; }
inline void atomicMax(unsigned long long* to, unsigned long long value) {
  if (value > *to) *to = value;
}

}  // namespace device_code
