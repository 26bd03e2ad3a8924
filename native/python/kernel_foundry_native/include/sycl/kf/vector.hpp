// Vectors of 16 floats, the widest registers of today's CPUs, with guarded loads and stores.
//
//   kf::Vector v                     + - * / and comparisons by element, also with a float;
//                                    v > 0.0f ? a : b chooses by element where a and b are vectors
//   kf::Whole{i}, kf::Part{i, n}     places in a row: elements i to i + 15; the first n < 16 of
//   them kf::load(row, at), kf::load(row, at, beyond)   row of float, half or bfloat16, of any
//   alignment;
//                                    what is outside of a Part is `beyond`, else 0
//   kf::store(row, at, v)            writes what is inside
//   kf::stream(row, at, v)           past the caches: for a large result that is not read again
//   kf::keep(at, v, beyond)          v with `beyond` in place of what is outside
//   kf::max(a, b), kf::min(a, b)     by element, of vectors or floats; a number wins over NaN
//   kf::sum(v), kf::highest(v), kf::lowest(v)      over a vector's elements
//   kf::work_group()                 number of the work-group
//
// A work-item works on whole vectors, so launch work-groups of one work-item. `at` is Whole or
// Part: a body that takes it as `auto` is written once for a row's middle and its end.
#pragma once

namespace kf {

constexpr int WIDTH = 16;

typedef float Vector __attribute__((ext_vector_type(16)));

struct Whole {
  int first;
};
struct Part {
  int first, count;
};

namespace detail {
// Loose: at any element, where vectors proper lie at multiples of their size.
typedef float LooseFloats __attribute__((ext_vector_type(16), aligned(4)));
typedef _Float16 LooseHalves __attribute__((ext_vector_type(16), aligned(2)));
typedef uint16_t LooseShorts __attribute__((ext_vector_type(16), aligned(2)));
typedef uint32_t Bits __attribute__((ext_vector_type(16)));
}  // namespace detail

inline size_t work_group() { return syclext::this_work_item::get_nd_item<1>().get_group(0); }

inline Vector load(const float* row, Whole at, float = 0.0f) {
  return *reinterpret_cast<const detail::LooseFloats*>(row + at.first);
}
inline Vector load(const half* row, Whole at, float = 0.0f) {
  return __builtin_convertvector(*reinterpret_cast<const detail::LooseHalves*>(row + at.first),
                                 Vector);
}
inline Vector load(const bfloat16* row, Whole at, float = 0.0f) {
  const auto high = *reinterpret_cast<const detail::LooseShorts*>(row + at.first);
  return __builtin_bit_cast(Vector, __builtin_convertvector(high, detail::Bits) << 16);
}
template <class T>
inline Vector load(const T* row, Part at, float beyond = 0.0f) {
  Vector v = beyond;
#pragma nounroll
  for (int i = 0; i < at.count; ++i) v[i] = static_cast<float>(row[at.first + i]);
  return v;
}

inline void store(float* row, Whole at, Vector v) {
  *reinterpret_cast<detail::LooseFloats*>(row + at.first) = v;
}
inline void store(half* row, Whole at, Vector v) {
  *reinterpret_cast<detail::LooseHalves*>(row + at.first) =
      __builtin_convertvector(v, detail::LooseHalves);
}
// To nearest even; NaN stays NaN.
inline void store(bfloat16* row, Whole at, Vector v) {
  const auto bits = __builtin_bit_cast(detail::Bits, v);
  const auto rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const auto high = v == v ? rounded : detail::Bits(0x7fc0u);
  *reinterpret_cast<detail::LooseShorts*>(row + at.first) =
      __builtin_convertvector(high, detail::LooseShorts);
}
template <class T>
inline void store(T* row, Part at, Vector v) {
#pragma nounroll
  for (int i = 0; i < at.count; ++i) row[at.first + i] = static_cast<T>(v[i]);
}

// Only whole cache lines gain by it.
inline void stream(float* row, Whole at, Vector v) {
  float* to = row + at.first;
  if (reinterpret_cast<uintptr_t>(to) % sizeof(Vector) == 0) {
    __builtin_nontemporal_store(v, reinterpret_cast<Vector*>(to));
  } else {
    store(row, at, v);
  }
}
template <class T, class Place>
inline void stream(T* row, Place at, Vector v) {
  store(row, at, v);
}

inline Vector keep(Whole, Vector v, float) { return v; }
inline Vector keep(Part at, Vector v, float beyond) {
#pragma nounroll
  for (int i = at.count; i < WIDTH; ++i) v[i] = beyond;
  return v;
}

inline Vector max(Vector a, Vector b) { return __builtin_elementwise_max(a, b); }
inline float max(float a, float b) { return __builtin_elementwise_max(a, b); }
inline Vector min(Vector a, Vector b) { return __builtin_elementwise_min(a, b); }
inline float min(float a, float b) { return __builtin_elementwise_min(a, b); }

inline float sum(Vector v) {
  const auto eight = v.lo + v.hi;
  const auto four = eight.lo + eight.hi;
  const auto two = four.lo + four.hi;
  return two.x + two.y;
}
inline float highest(Vector v) {
  const auto eight = __builtin_elementwise_max(v.lo, v.hi);
  const auto four = __builtin_elementwise_max(eight.lo, eight.hi);
  const auto two = __builtin_elementwise_max(four.lo, four.hi);
  return max(two.x, two.y);
}
inline float lowest(Vector v) { return -highest(-v); }

}  // namespace kf
