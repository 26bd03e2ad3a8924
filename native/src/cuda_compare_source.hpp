// Device code of cuda_compare.cpp, compiled at run time with `Element` and `compare_elements`
// defined before it. It includes nothing, so it needs no toolkit.
#pragma once

namespace kernel_foundry {

inline constexpr const char* cuda_compare_source = R"cuda(
typedef unsigned int u32;
typedef unsigned long long u64;

struct Float16 { unsigned short bits; };
struct BFloat16 { unsigned short bits; };
struct Float8E4M3 { unsigned char bits; };
struct Float8E5M2 { unsigned char bits; };

// What was found, so that zero is nothing and every entry is a sum or a maximum.
enum Sum { mismatches, nans, infs, poisoned, sum_count };
enum Top { first_inverted, max_abs, max_rel, least_inverted, greatest, nan_errors, no_factor,
           top_count };
struct Found { u64 sums[sum_count]; u64 tops[top_count]; };

struct Options {
  const float* scales;  // null: 1
  u64 groups, inner;
  double rtol, atol;
};

// As element.hpp does it.
template <typename T> __device__ double value_of(T x) { return (double)x; }
__device__ double value_of(BFloat16 x) { return __uint_as_float((u32)x.bits << 16); }
__device__ double value_of(Float16 x) {
  float wide;
  asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(x.bits));
  return wide;
}
__device__ double value_of(Float8E5M2 x) {
  return value_of(Float16{(unsigned short)(x.bits << 8)});
}
__device__ double value_of(Float8E4M3 x) {
  const u32 magnitude = x.bits & 0x7Fu, sign = (u32)(x.bits & 0x80u) << 24;
  if (magnitude == 0x7Fu) return __uint_as_float(0x7FC00000u | sign);
  return (double)__uint_as_float((magnitude << 20) | sign) * 0x1p120;
}

template <typename T> struct IsInteger { static const bool value = true; };
template <> struct IsInteger<float> { static const bool value = false; };
template <> struct IsInteger<double> { static const bool value = false; };
template <> struct IsInteger<Float16> { static const bool value = false; };
template <> struct IsInteger<BFloat16> { static const bool value = false; };
template <> struct IsInteger<Float8E4M3> { static const bool value = false; };
template <> struct IsInteger<Float8E5M2> { static const bool value = false; };

__device__ bool is_finite(double x) { return fabs(x) <= 1.7976931348623157e308; }
__device__ bool is_nan(double x) { return x != x; }

// As compare.cpp does it.
template <typename T> __device__ double error_of(T actual, T expected, double a, double e) {
  if constexpr (IsInteger<T>::value) {
    const u64 difference = (u64)actual - (u64)expected;
    return (double)(actual > expected ? difference : 0 - difference);
  } else {
    return a == e || (is_nan(a) && is_nan(e)) ? 0.0 : fabs(a - e);
  }
}

template <typename T> __device__ bool is_poison(T x) {
  const unsigned char* bytes = (const unsigned char*)&x;
  bool all = true;
  for (u32 i = 0; i < sizeof(T); ++i) all = all && bytes[i] == 0xFF;
  return all;
}

// Keeps the order of doubles as unsigned integers, none of them 0.
__device__ u64 ordered(double x) {
  const u64 bits = (u64)__double_as_longlong(x);
  return bits >> 63 ? ~bits : bits | (1ull << 63);
}

// What one thread found.
struct Running {
  u64 sums[sum_count] = {};
  u64 first = ~0ull;
  double max_abs = 0, max_rel = 0;
  u64 least = ~0ull, greatest = 0;
  bool has_nan = false, has_no_factor = false;

  template <typename T> __device__ void mismatch(T element, double a, double e, u64 index) {
    ++sums[mismatches];
    if (index < first) first = index;
    if (is_poison(element)) ++sums[poisoned];
    const double factor = a / e;
    if (!is_finite(factor)) {
      has_no_factor = true;
      return;
    }
    const u64 order = ordered(factor);
    if (order < least) least = order;
    if (order > greatest) greatest = order;
  }

  template <typename T>
  __device__ void element(T actual, T expected, u64 index, double scale, const Options& options) {
    const double a = value_of(actual), e = value_of(expected);
    if (!is_finite(a)) {
      sums[nans] += is_nan(a);
      sums[infs] += !is_nan(a);
    }
    const double error = error_of(actual, expected, a, e);
    if (error == 0) return;
    const double magnitude = fabs(e);
    if (is_nan(error)) {
      has_nan = true;
    } else {
      if (error > max_abs) max_abs = error;
      // A division only where it may raise the maximum. The product is exact but for a few parts
      // in 2^53, unless it is near the least double.
      const double bound = max_rel * magnitude;
      if (magnitude != 0 && (bound < 1e-280 || error >= bound * (1 - 1e-15))) {
        const double relative = error / magnitude;
        if (relative > max_rel) max_rel = relative;
      }
    }
    // Products and sum are rounded each, as on the host.
    const double allowed = __dadd_rn(__dmul_rn(options.atol, scale),
                                     __dmul_rn(options.rtol, magnitude));
    if (!(is_finite(a) && is_finite(e) && error <= allowed)) mismatch(actual, a, e, index);
  }

  __device__ void publish(Found* found) const {
    const u64 tops[top_count] = {~first, (u64)__double_as_longlong(max_abs),
                                 (u64)__double_as_longlong(max_rel), ~least, greatest,
                                 has_nan, has_no_factor};
    const bool is_first_lane = threadIdx.x % 32 == 0;
    for (u32 i = 0; i < sum_count; ++i) {
      u64 sum = sums[i];
      for (u32 step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
      if (is_first_lane && sum != 0) atomicAdd(&found->sums[i], sum);
    }
    for (u32 i = 0; i < top_count; ++i) {
      u64 top = tops[i];
      for (u32 step = 16; step > 0; step /= 2) {
        const u64 other = __shfl_xor_sync(~0u, top, step);
        if (other > top) top = other;
      }
      if (is_first_lane && top != 0) atomicMax(&found->tops[i], top);
    }
  }
};

// Walks through the scales of consecutive elements.
struct Scales {
  const Options& options;
  u64 group = 0, within = 0;

  __device__ Scales(const Options& chosen, u64 index) : options(chosen) {
    if (options.scales == nullptr || options.groups == 1) return;
    if ((index | options.inner) >> 32 == 0) {
      const u32 outer = (u32)index / (u32)options.inner;
      within = (u32)index - outer * (u32)options.inner;
      group = outer % options.groups;
    } else {
      const u64 outer = index / options.inner;
      within = index - outer * options.inner;
      group = outer % options.groups;
    }
  }
  __device__ double next() {
    if (options.scales == nullptr) return 1;
    const double scale = options.scales[group];
    if (options.groups > 1 && ++within == options.inner) {
      within = 0;
      if (++group == options.groups) group = 0;
    }
    return scale;
  }
};

// One load. Bytes come in eights: more of them in a row are only more code.
template <u32 size_bytes> struct Word { using Type = uint4; };
template <> struct Word<8> { using Type = uint2; };

template <typename T> union Pack {
  static const u32 count = sizeof(T) == 1 ? 8 : 16 / sizeof(T);
  using Whole = typename Word<count * sizeof(T)>::Type;
  Whole whole;
  T at[count];
  __device__ Pack(const T* from, u64 pack) { whole = ((const Whole*)from)[pack]; }
};

template <typename T>
__device__ void check(Running& running, const Pack<T>& actual, const Pack<T>& expected, u64 pack,
                      const Options& options) {
  const u64 index = pack * Pack<T>::count;
  Scales scales(options, index);
#pragma unroll
  for (u32 i = 0; i < Pack<T>::count; ++i) {
    running.element(actual.at[i], expected.at[i], index + i, scales.next(), options);
  }
}

__device__ u64 thread_index() { return blockIdx.x * (u64)blockDim.x + threadIdx.x; }
__device__ u64 thread_count() { return gridDim.x * (u64)blockDim.x; }
__device__ bool is_aligned(const void* a, const void* b) { return (((u64)a | (u64)b) & 15) == 0; }

extern "C" __global__ void __launch_bounds__(256)
compare_elements(const Element* actual, const Element* expected, const float* scale_values,
                 Found* found, u64 count, u64 groups, u64 inner, double rtol, double atol) {
  const Options options = {scale_values, groups, inner, rtol, atol};
  const u64 packs = is_aligned(actual, expected) ? count / Pack<Element>::count : 0;
  const u64 threads = thread_count();
  Running running;
  u64 pack = thread_index();
  // Two packs at a time keep enough loads in flight.
  for (; pack + threads < packs; pack += 2 * threads) {
    const Pack<Element> a0(actual, pack), e0(expected, pack);
    const Pack<Element> a1(actual, pack + threads), e1(expected, pack + threads);
    check(running, a0, e0, pack, options);
    check(running, a1, e1, pack + threads, options);
  }
  if (pack < packs) {
    check(running, Pack<Element>(actual, pack), Pack<Element>(expected, pack), pack, options);
  }
  for (u64 i = packs * Pack<Element>::count + thread_index(); i < count; i += threads) {
    running.element(actual[i], expected[i], i, Scales(options, i).next(), options);
  }
  running.publish(found);
}

extern "C" __global__ void __launch_bounds__(256)
find_difference(const unsigned char* a, const unsigned char* b, u64* differs, u64 size_bytes) {
  const u64 packs = is_aligned(a, b) ? size_bytes / 16 : 0;
  u32 difference = 0;
  for (u64 pack = thread_index(); pack < packs; pack += thread_count()) {
    const uint4 x = ((const uint4*)a)[pack], y = ((const uint4*)b)[pack];
    difference |= (x.x ^ y.x) | (x.y ^ y.y) | (x.z ^ y.z) | (x.w ^ y.w);
  }
  for (u64 i = packs * 16 + thread_index(); i < size_bytes; i += thread_count()) {
    difference |= a[i] ^ b[i];
  }
  if (__any_sync(~0u, difference != 0) && threadIdx.x % 32 == 0) atomicMax(differs, 1ull);
}
)cuda";

}  // namespace kernel_foundry
