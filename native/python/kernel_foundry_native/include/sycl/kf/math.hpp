// Functions that compile to multiply-adds on whole vectors; each takes a Vector or a float.
//
//   kf::exp(x)           within 2 units of the last place; 0 below -87
//   kf::sqrt(x), kf::rsqrt(x), kf::tanh(x), kf::sigmoid(x), kf::erf(x)
//   kf::relu(x), kf::silu(x), kf::gelu(x), kf::gelu_tanh(x)     activations
#pragma once

#include <kf/vector.hpp>

namespace kf {

namespace detail {
// 2^(whole - 1) where `shifted` is 1.5 * 2^23 + whole.
inline float half_power(float shifted) {
  return __builtin_bit_cast(float, (__builtin_bit_cast(uint32_t, shifted) + 126u) << 23);
}
inline Vector half_power(Vector shifted) {
  return __builtin_bit_cast(Vector, (__builtin_bit_cast(Bits, shifted) + 126u) << 23);
}
}  // namespace detail

// 2^whole * e^f with |f| <= ln(2) / 2: ln(2) in two parts, e^f by the Cephes library's polynomial.
template <class V>
inline V exp(V x) {
  const V low = V(-87.0f), high = V(89.0f);
  V y = x < low ? low : x;
  y = y > high ? high : y;
  const V shifted = y * 1.44269504f + 12582912.0f;  // 1.5 * 2^23: its last bits are the whole part
  const V whole = shifted - 12582912.0f;
  V f = whole * -0.693359375f + y;
  f = whole * 2.12194440e-4f + f;
  V p = V(1.9875691500e-4f);
  p = p * f + 1.3981999507e-3f;
  p = p * f + 8.3334519073e-3f;
  p = p * f + 4.1665795894e-2f;
  p = p * f + 1.6666665459e-1f;
  p = p * f + 5.0000001201e-1f;
  p = p * (f * f) + f + 1.0f;
  p = p * detail::half_power(shifted) * 2.0f;
  return x < low ? V(0.0f) : p;
}

template <class V>
inline V sqrt(V x) {
  return __builtin_elementwise_sqrt(x);
}
template <class V>
inline V rsqrt(V x) {
  return 1.0f / sqrt(x);
}
template <class V>
inline V sigmoid(V x) {
  return 1.0f / (1.0f + exp(-x));
}
// By 1 - 2 / (e^2x + 1), and near 0, where that cancels, by a fraction.
template <class V>
inline V tanh(V x) {
  const V far = 1.0f - 2.0f / (exp(2.0f * x) + 1.0f);
  const V s = x * x;
  const V near = x * (s * (s + 105.0f) + 945.0f) / (s * (s * 15.0f + 420.0f) + 945.0f);
  return s < V(0.3f) ? near : far;
}
// Quotient of polynomials, the one of XLA and Eigen: float32 accuracy. Beyond 4 it is 1, exactly,
// for infinities to become of it what they do in PyTorch.
template <class V>
inline V erf(V x) {
  const V s = x * x;
  V p = V(-2.72614225801306e-10f);
  p = p * s + 2.77068142495902e-08f;
  p = p * s - 2.10102402082508e-06f;
  p = p * s - 5.69250639462346e-05f;
  p = p * s - 7.34990630326855e-04f;
  p = p * s - 2.95459980854025e-03f;
  p = p * s - 1.60960333262415e-02f;
  V q = V(-1.45660718464996e-05f);
  q = q * s - 2.13374055278905e-04f;
  q = q * s - 1.68282697438203e-03f;
  q = q * s - 7.37332916720468e-03f;
  q = q * s - 1.42647390514189e-02f;
  const V inside = x * p / q;
  const V below = x < V(-4.0f) ? V(-1.0f) : inside;
  return x > V(4.0f) ? V(1.0f) : below;
}

template <class V>
inline V relu(V x) {
  return x < V(0.0f) ? V(0.0f) : x;
}
template <class V>
inline V silu(V x) {
  return x * sigmoid(x);
}
template <class V>
inline V gelu(V x) {
  return 0.5f * x * (1.0f + erf(x * 0.70710678f));
}
template <class V>
inline V gelu_tanh(V x) {
  return x * sigmoid(1.59576912f * (x + 0.044715f * x * x * x));
}

}  // namespace kf
