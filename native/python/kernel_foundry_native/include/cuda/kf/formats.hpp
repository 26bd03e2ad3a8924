// The formats that tensor cores multiply: __half, __nv_bfloat16, float (rounded to TF32, 11 bits),
// __nv_fp8_e4m3 and __nv_fp8_e5m2 (include <cuda_fp8.h> for the last two).
//
//   kf::BYTES<Element>   size of a value
//   kf::LINE<Element>    values in a line of 128 bytes, as tiles in shared memory have them
#pragma once

struct __nv_fp8_e4m3;
struct __nv_fp8_e5m2;

namespace kf {

template <class A, class B>
inline constexpr bool IS_SAME = false;
template <class A>
inline constexpr bool IS_SAME<A, A> = true;

template <class Element>
inline constexpr bool IS_BFLOAT16 = IS_SAME<Element, __nv_bfloat16>;
template <class Element>
inline constexpr bool IS_TF32 = IS_SAME<Element, float>;
template <class Element>
inline constexpr bool IS_E4M3 = IS_SAME<Element, __nv_fp8_e4m3>;
template <class Element>
inline constexpr bool IS_E5M2 = IS_SAME<Element, __nv_fp8_e5m2>;

template <class Element>
__host__ __device__ constexpr int bytes_of() {
  static_assert(IS_SAME<Element, __half> || IS_BFLOAT16<Element> || IS_TF32<Element> ||
                    IS_E4M3<Element> || IS_E5M2<Element>,
                "operands are __half, __nv_bfloat16, float, __nv_fp8_e4m3 or __nv_fp8_e5m2");
  return IS_TF32<Element> ? 4 : IS_E4M3<Element> || IS_E5M2<Element> ? 1 : 2;
}

template <class Element>
inline constexpr int BYTES = bytes_of<Element>();
template <class Element>
inline constexpr int LINE = 128 / BYTES<Element>;

}  // namespace kf
