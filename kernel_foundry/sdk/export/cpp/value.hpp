// The numbers that a plan computes with: Python's, as far as plans have them.
#pragma once

#include <climits>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

// Why kernels cannot run.
struct Refusal : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A tensor as a plan sees it: contiguous, of a known shape.
struct Buffer {
  enum class Kind { tensor, scratch, prepared };
  Kind kind;
  std::string name, dtype;
  std::vector<std::int64_t> shape;
};

struct Value {
  enum class Kind { none, boolean, integer, real, text, tuple, tensor };
  Kind kind = Kind::none;
  std::int64_t integer = 0;
  double real = 0;
  std::string words;
  std::shared_ptr<const std::vector<Value>> items;
  Buffer* tensor = nullptr;

  Value() = default;
  explicit Value(std::int64_t number) : kind(Kind::integer), integer(number) {}
  explicit Value(double number) : kind(Kind::real), real(number) {}
  Value(bool truth) : kind(Kind::boolean), integer(truth) {}
  explicit Value(Buffer* buffer) : kind(Kind::tensor), tensor(buffer) {}
  explicit Value(std::vector<Value> parts)
      : kind(Kind::tuple), items(std::make_shared<const std::vector<Value>>(std::move(parts))) {}
  static Value text(std::string written) {
    Value made;
    made.kind = Kind::text, made.words = std::move(written);
    return made;
  }

  bool is_whole() const { return kind == Kind::integer || kind == Kind::boolean; }
  bool is_number() const { return is_whole() || kind == Kind::real; }
  double as_real() const {
    if (!is_number()) throw Refusal("a number was expected");
    return is_whole() ? static_cast<double>(integer) : real;
  }
  std::int64_t as_whole() const {
    if (!is_whole()) throw Refusal("a whole number was expected");
    return integer;
  }
  const std::vector<Value>& as_tuple() const {
    if (kind != Kind::tuple) throw Refusal("a tuple was expected");
    return *items;
  }
  const std::string& as_text() const {
    if (kind != Kind::text) throw Refusal("a text was expected");
    return words;
  }
  Buffer& as_tensor() const {
    if (kind != Kind::tensor) throw Refusal("a tensor was expected");
    return *tensor;
  }

  Value shape() const;
  Value ndim() const { return Value(static_cast<std::int64_t>(as_tensor().shape.size())); }
  Value dtype() const { return text(as_tensor().dtype); }
  Value numel() const;
  Value size() const { return shape(); }
  Value size(const Value& dimension) const { return shape()[dimension]; }
  Value stride() const;
  Value stride(const Value& dimension) const { return stride()[dimension]; }
  Value operator[](const Value& index) const;
  Value part(const Value& lower, const Value& upper, const Value& step) const;
};

inline Value operator""_v(unsigned long long number) {
  return Value(static_cast<std::int64_t>(number));
}
inline Value operator""_v(const char* written, std::size_t length) {
  return Value::text(std::string(written, length));
}

inline Value tuple(std::initializer_list<Value> items) { return Value(std::vector<Value>(items)); }

inline std::int64_t checked(bool overflows, std::int64_t number) {
  if (overflows) throw Refusal("a whole number does not fit 64 bits");
  return number;
}

inline Value operator+(const Value& left, const Value& right) {
  if (!left.is_whole() || !right.is_whole()) return Value(left.as_real() + right.as_real());
  std::int64_t sum = 0;
  const bool overflows = __builtin_add_overflow(left.integer, right.integer, &sum);
  return Value(checked(overflows, sum));
}
inline Value operator-(const Value& left, const Value& right) {
  if (!left.is_whole() || !right.is_whole()) return Value(left.as_real() - right.as_real());
  std::int64_t difference = 0;
  const bool overflows = __builtin_sub_overflow(left.integer, right.integer, &difference);
  return Value(checked(overflows, difference));
}
inline Value operator*(const Value& left, const Value& right) {
  if (!left.is_whole() || !right.is_whole()) return Value(left.as_real() * right.as_real());
  std::int64_t product = 0;
  const bool overflows = __builtin_mul_overflow(left.integer, right.integer, &product);
  return Value(checked(overflows, product));
}
inline Value operator-(const Value& value) { return 0_v - value; }
inline Value operator+(const Value& value) { return 0_v + value; }

inline void check_divisor(const Value& divisor) {
  if (divisor.as_real() == 0) throw Refusal("division by zero");
}
inline Value divide(const Value& left, const Value& right) {
  check_divisor(right);
  return Value(left.as_real() / right.as_real());
}
// Rounded down, as Python does.
inline std::int64_t quotient(std::int64_t left, std::int64_t right) {
  checked(left == INT64_MIN && right == -1, 0);
  return left / right - (left % right != 0 && (left < 0) != (right < 0));
}
inline Value modulo(const Value& left, const Value& right) {
  check_divisor(right);
  if (!left.is_whole() || !right.is_whole()) {
    const double rest = std::fmod(left.as_real(), right.as_real());
    if (rest == 0) return Value(std::copysign(0.0, right.as_real()));
    return Value((rest < 0) != (right.as_real() < 0) ? rest + right.as_real() : rest);
  }
  return Value(left.integer - quotient(left.integer, right.integer) * right.integer);
}
inline Value floor_divide(const Value& left, const Value& right) {
  check_divisor(right);
  if (left.is_whole() && right.is_whole()) return Value(quotient(left.integer, right.integer));
  const double whole = (left.as_real() - modulo(left, right).as_real()) / right.as_real();
  return Value(std::round(whole));
}
inline Value power(const Value& base, const Value& exponent) {
  if (base.is_whole() && exponent.is_whole() && exponent.integer >= 0) {
    Value product = 1_v;
    const bool is_large = base.integer > 1 || base.integer < -1;
    checked(is_large && exponent.integer > 64, 0);
    // Powers of -1, 0 and 1 repeat after two steps.
    const std::int64_t count = is_large ? exponent.integer : exponent.integer % 2 + 2;
    for (std::int64_t i = exponent.integer == 0 ? count : 0; i < count; ++i) {
      product = product * base;
    }
    return product;
  }
  if (base.as_real() == 0 && exponent.as_real() < 0) throw Refusal("division by zero");
  const double result = std::pow(base.as_real(), exponent.as_real());
  if (std::isnan(result) && !std::isnan(base.as_real()) && !std::isnan(exponent.as_real())) {
    throw Refusal("the result is not a real number");
  }
  return Value(result);
}

inline bool operator==(const Value& left, const Value& right) {
  if (left.is_whole() && right.is_whole()) return left.integer == right.integer;
  if (left.is_number() && right.is_number()) return left.as_real() == right.as_real();
  if (left.kind == Value::Kind::tensor || right.kind == Value::Kind::tensor) {
    throw Refusal("tensors cannot be compared");
  }
  if (left.kind != right.kind) return false;
  if (left.kind == Value::Kind::tuple) return *left.items == *right.items;
  return left.words == right.words;
}
inline bool operator!=(const Value& left, const Value& right) { return !(left == right); }
inline bool operator<(const Value& left, const Value& right) {
  if (left.is_whole() && right.is_whole()) return left.integer < right.integer;
  return left.as_real() < right.as_real();
}
inline bool operator>(const Value& left, const Value& right) { return right < left; }
inline bool operator<=(const Value& left, const Value& right) {
  if (left.is_whole() && right.is_whole()) return left.integer <= right.integer;
  return left.as_real() <= right.as_real();
}
inline bool operator>=(const Value& left, const Value& right) { return right <= left; }
inline bool contains(const Value& items, const Value& value) {
  for (const Value& item : items.as_tuple()) {
    if (item == value) return true;
  }
  return false;
}

inline bool truth(const Value& value) {
  switch (value.kind) {
  case Value::Kind::boolean:
  case Value::Kind::integer: return value.integer != 0;
  case Value::Kind::real: return value.real != 0;
  case Value::Kind::text: return !value.words.empty();
  case Value::Kind::tuple: return !value.items->empty();
  default: throw Refusal("a condition is neither true nor false");
  }
}
// `and` and `or`: one of their operands; the second is computed where it is needed.
template <typename Second>
Value both(const Value& first, Second second) {
  return truth(first) ? second() : first;
}
template <typename Second>
Value either(const Value& first, Second second) {
  return truth(first) ? first : second();
}

inline Value cdiv(const Value& dividend, const Value& divisor) {
  check_divisor(divisor);
  return Value(-quotient(-dividend.as_whole(), divisor.as_whole()));
}
inline Value extreme(std::vector<Value> values, bool is_max) {
  if (values.size() == 1 && values[0].kind == Value::Kind::tuple) {
    values = std::vector<Value>(values[0].as_tuple());
  }
  if (values.empty()) throw Refusal("min and max need at least one number");
  Value found = values[0];
  for (const Value& value : values) {
    if (is_max ? value > found : value < found) found = value;
  }
  return found;
}
inline Value min(std::initializer_list<Value> values) { return extreme(values, false); }
inline Value max(std::initializer_list<Value> values) { return extreme(values, true); }
inline Value abs(const Value& value) {
  if (!value.is_whole()) return Value(std::fabs(value.as_real()));
  return value.integer < 0 ? -value : Value(value.integer);
}
inline Value to_int(const Value& value) {
  if (value.is_whole()) return Value(value.integer);
  const double whole = std::trunc(value.as_real());
  checked(!(whole >= -9223372036854775808.0 && whole < 9223372036854775808.0), 0);
  return Value(static_cast<std::int64_t>(whole));
}
inline Value len(const Value& value) {
  if (value.kind == Value::Kind::text) return Value(static_cast<std::int64_t>(value.words.size()));
  return Value(static_cast<std::int64_t>(value.as_tuple().size()));
}
inline Value next_pow2(const Value& value) {
  std::int64_t found = 1;
  while (found < value.as_whole()) {
    checked(found > (INT64_MAX >> 1), 0);
    found <<= 1;
  }
  return Value(found);
}
inline Value defined(double result) {
  if (!std::isfinite(result)) throw Refusal("a result is not defined, or too large");
  return Value(result);
}
inline Value sqrt(const Value& value) { return defined(std::sqrt(value.as_real())); }
inline Value exp(const Value& value) { return defined(std::exp(value.as_real())); }
inline Value log2(const Value& value) { return defined(std::log2(value.as_real())); }

inline Value range(std::initializer_list<Value> numbers) {
  const std::vector<Value> given(numbers);
  const std::int64_t from = given.size() > 1 ? given[0].as_whole() : 0;
  const std::int64_t to = given[given.size() > 1 ? 1 : 0].as_whole();
  const std::int64_t step = given.size() > 2 ? given[2].as_whole() : 1;
  if (step == 0) throw Refusal("the step of range cannot be 0");
  constexpr std::size_t most = 100000;  // steps that a plan may take
  std::vector<Value> found;
  for (std::int64_t i = from; step > 0 ? i < to : i > to; i += step) {
    if (found.size() == most) throw Refusal("a loop has too many turns");
    found.emplace_back(i);
  }
  return Value(std::move(found));
}

// One of the items of a tuple that has to have so many.
inline Value unpacked(const Value& items, std::size_t index, std::size_t count) {
  if (items.as_tuple().size() != count) throw Refusal("a tuple has another number of items");
  return items.as_tuple()[index];
}

inline Value Value::shape() const {
  std::vector<Value> sizes;
  for (const std::int64_t size : as_tensor().shape) sizes.emplace_back(size);
  return Value(std::move(sizes));
}
inline Value Value::numel() const {
  Value count = 1_v;
  for (const std::int64_t size : as_tensor().shape) count = count * Value(size);
  return count;
}
inline Value Value::stride() const {
  std::vector<Value> strides(as_tensor().shape.size());
  Value step = 1_v;
  for (std::size_t i = strides.size(); i-- > 0;) {
    strides[i] = step;
    step = step * Value(tensor->shape[i]);
  }
  return Value(std::move(strides));
}
inline Value Value::operator[](const Value& index) const {
  const auto& known = as_tuple();
  const auto count = static_cast<std::int64_t>(known.size());
  const std::int64_t at = index.as_whole() < 0 ? index.integer + count : index.integer;
  if (at < 0 || at >= count) throw Refusal("a tuple has no such item");
  return known[static_cast<std::size_t>(at)];
}
inline Value Value::part(const Value& lower, const Value& upper, const Value& step) const {
  const auto& known = as_tuple();
  const auto count = static_cast<std::int64_t>(known.size());
  const std::int64_t by = step.kind == Kind::none ? 1 : step.as_whole();
  if (by == 0) throw Refusal("the step of a slice cannot be 0");
  const auto bound = [&](const Value& given, std::int64_t absent) {
    if (given.kind == Kind::none) return absent;
    const std::int64_t at = given.as_whole() < 0 ? given.integer + count : given.integer;
    const std::int64_t least = by > 0 ? 0 : -1;
    return at < least ? least : at > count + least ? count + least : at;
  };
  std::vector<Value> found;
  const std::int64_t end = bound(upper, by > 0 ? count : -1);
  for (std::int64_t i = bound(lower, by > 0 ? 0 : count - 1); by > 0 ? i < end : i > end; i += by) {
    found.push_back(known[static_cast<std::size_t>(i)]);
  }
  return Value(std::move(found));
}
