// Element types of tensors and how their values are read.
#pragma once

#include <bit>
#include <cstdint>
#include <string>

namespace kernel_foundry {

struct Float16 {
  std::uint16_t bits;
};

struct BFloat16 {
  std::uint16_t bits;
};

// Sign, 4 bits of exponent, 3 of mantissa; no infinity, and one NaN of either sign.
struct Float8E4M3 {
  std::uint8_t bits;
};

// The upper half of a Float16.
struct Float8E5M2 {
  std::uint8_t bits;
};

// The value of an element as double: exact for every type but 64-bit integers beyond 2^53.
template <typename T>
double value_of(T element) {
  return static_cast<double>(element);
}

inline double value_of(BFloat16 element) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(element.bits) << 16);
}

inline double value_of(Float16 element) {
  const std::uint32_t sign = static_cast<std::uint32_t>(element.bits & 0x8000u) << 16;
  const std::uint32_t exponent = (element.bits >> 10) & 0x1Fu;
  const std::uint32_t fraction = element.bits & 0x3FFu;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return sign != 0 ? -magnitude : magnitude;
  }
  const std::uint32_t wide = exponent == 31 ? 255u : exponent + 112u;
  return std::bit_cast<float>(sign | (wide << 23) | (fraction << 13));
}

inline double value_of(Float8E5M2 element) {
  return value_of(Float16{static_cast<std::uint16_t>(element.bits << 8)});
}

inline double value_of(Float8E4M3 element) {
  const std::uint32_t magnitude = element.bits & 0x7Fu;
  const std::uint32_t sign = static_cast<std::uint32_t>(element.bits & 0x80u) << 24;
  if (magnitude == 0x7Fu) return std::bit_cast<float>(0x7FC00000u | sign);
  // As a float the exponent is 120 too small, of denormals as well.
  return std::bit_cast<float>((magnitude << 20) | sign) * 0x1p120;
}

// Calls `visit` with a value of the element type that torch calls `dtype`; returns false when
// there is no such type.
template <typename Visitor>
bool visit_element_type(const std::string& dtype, Visitor&& visit) {
  if (dtype == "float32") return visit(float{}), true;
  if (dtype == "float64") return visit(double{}), true;
  if (dtype == "float16") return visit(Float16{}), true;
  if (dtype == "bfloat16") return visit(BFloat16{}), true;
  if (dtype == "float8_e4m3fn") return visit(Float8E4M3{}), true;
  if (dtype == "float8_e5m2") return visit(Float8E5M2{}), true;
  if (dtype == "int32") return visit(std::int32_t{}), true;
  if (dtype == "int64") return visit(std::int64_t{}), true;
  if (dtype == "int16") return visit(std::int16_t{}), true;
  if (dtype == "int8") return visit(std::int8_t{}), true;
  if (dtype == "uint8" || dtype == "bool") return visit(std::uint8_t{}), true;
  return false;
}

}  // namespace kernel_foundry
