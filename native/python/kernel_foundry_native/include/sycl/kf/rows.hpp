// Loops over a row, by vectors and with its end guarded, and what is known of a row after them.
//
//   kf::each<UNROLL>(columns, [&](auto at) { ... })             every element once
//   kf::reduce<UNROLL>(columns, kf::Sum(), [&](auto at) { ... return v; })   Sum, Max or Min of v
//   kf::moments<UNROLL>(columns, value)        Moments{mean, variance}: two passes, value called
//   twice kf::moments_once<UNROLL>(columns, value)   the same in one pass (Welford), value called
//   once kf::softmax<UNROLL>(columns, value)        Softmax{top, sum}: the maximum and the sum of
//                                              exp(v - top), online, in one pass
//
// `value` takes a place `at` and returns a Vector there, such as kf::load(x, at) + kf::load(bias,
// at); what it returns outside of the row does not count. UNROLL vectors are worked on at a time,
// each with sums of its own. A second pass over a row of up to some 100,000 floats comes from the
// cache.
#pragma once

#include <kf/math.hpp>
#include <kf/vector.hpp>

namespace kf {

struct Sum {
  static constexpr float NEUTRAL = 0.0f;
  Vector operator()(Vector a, Vector b) const { return a + b; }
  float over(Vector v) const { return sum(v); }
};
struct Max {
  static constexpr float NEUTRAL = -__builtin_inff();
  Vector operator()(Vector a, Vector b) const { return max(a, b); }
  float over(Vector v) const { return highest(v); }
};
struct Min {
  static constexpr float NEUTRAL = __builtin_inff();
  Vector operator()(Vector a, Vector b) const { return min(a, b); }
  float over(Vector v) const { return lowest(v); }
};

// Of a population, as normalisations want it.
struct Moments {
  float mean, variance;
};

struct Softmax {
  float top, sum;
  float log_sum() const { return top + __builtin_elementwise_log(sum); }
};

namespace detail {
// `many` gets the first element of UNROLL vectors at a time, `one` the places of what is left.
template <int UNROLL, class Many, class One>
inline void walk(int columns, Many&& many, One&& one) {
  int i = 0;
  for (; i + UNROLL * WIDTH <= columns; i += UNROLL * WIDTH) many(i);
  for (; i + WIDTH <= columns; i += WIDTH) one(Whole{i});
  if (i < columns) one(Part{i, columns - i});
}
inline int count(Whole) { return WIDTH; }
inline int count(Part at) { return at.count; }
// What to subtract from values of which `top` is the largest: infinities would give NaN.
inline Vector base(Vector top) { return top == Vector(-__builtin_inff()) ? Vector(0.0f) : top; }
}  // namespace detail

template <int UNROLL = 4, class Body>
inline void each(int columns, Body&& body) {
  detail::walk<UNROLL>(
      columns,
      [&](int i) {
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) body(Whole{i + u * WIDTH});
      },
      body);
}

template <int UNROLL = 4, class Operation, class Value>
inline float reduce(int columns, Operation operation, Value&& value) {
  Vector all[UNROLL];
#pragma unroll
  for (int u = 0; u < UNROLL; ++u) all[u] = Operation::NEUTRAL;
  detail::walk<UNROLL>(
      columns,
      [&](int i) {
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) all[u] = operation(all[u], value(Whole{i + u * WIDTH}));
      },
      [&](auto at) { all[0] = operation(all[0], keep(at, value(at), Operation::NEUTRAL)); });
#pragma unroll
  for (int u = 1; u < UNROLL; ++u) all[0] = operation(all[0], all[u]);
  return operation.over(all[0]);
}

template <int UNROLL = 4, class Value>
inline Moments moments(int columns, Value&& value) {
  const float mean = reduce<UNROLL>(columns, Sum(), value) / columns;
  const float squares = reduce<UNROLL>(columns, Sum(), [&](auto at) {
    const Vector distance = value(at) - mean;
    return distance * distance;
  });
  return {mean, squares / columns};
}

template <int UNROLL = 4, class Value>
inline Moments moments_once(int columns, Value&& value) {
  Vector means[UNROLL] = {}, squares[UNROLL] = {};
  float steps = 0.0f;                                  // values in each element of `means`
  float seen = 0.0f, mean = 0.0f, all_squares = 0.0f;  // of what is behind the last whole step
  const auto join = [&](float count, float its_mean, float its_squares) {
    if (count == 0.0f) return;
    const float distance = its_mean - mean, share = count / (seen + count);
    mean += distance * share;
    all_squares += its_squares + distance * distance * seen * share;
    seen += count;
  };
  detail::walk<UNROLL>(
      columns,
      [&](int i) {
        steps += 1.0f;
        const float share = 1.0f / steps;
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) {
          const Vector v = value(Whole{i + u * WIDTH}), distance = v - means[u];
          means[u] += distance * share;
          squares[u] += distance * (v - means[u]);
        }
      },
      [&](auto at) {
        const int count = detail::count(at);
        const Vector v = value(at);
        const float its_mean = sum(keep(at, v, 0.0f)) / count;
        const Vector distance = keep(at, v - its_mean, 0.0f);
        join(count, its_mean, sum(distance * distance));
      });
#pragma unroll
  for (int u = 0; u < UNROLL; ++u) {
    const float its_mean = sum(means[u]) / WIDTH;
    const Vector distance = means[u] - its_mean;
    join(steps * WIDTH, its_mean, sum(squares[u]) + steps * sum(distance * distance));
  }
  return {mean, all_squares / columns};
}

template <int UNROLL = 4, class Value>
inline Softmax softmax(int columns, Value&& value) {
  Vector top = -__builtin_inff(), all = 0.0f;
  detail::walk<UNROLL>(
      columns,
      [&](int i) {
        Vector v[UNROLL], higher = top;
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) {
          v[u] = value(Whole{i + u * WIDTH});
          higher = max(higher, v[u]);
        }
        const Vector base = detail::base(higher);
        all *= exp(top - base);
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) all += exp(v[u] - base);
        top = higher;
      },
      [&](auto at) {
        const Vector v = keep(at, value(at), -__builtin_inff());
        const Vector higher = max(top, v), base = detail::base(higher);
        all = all * exp(top - base) + exp(v - base);
        top = higher;
      });
  const float highest_of_all = highest(top);
  const Vector base = detail::base(highest_of_all);
  return {highest_of_all, sum(all * exp(top - base))};
}

}  // namespace kf
