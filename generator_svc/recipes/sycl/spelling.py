"""SYCL spellings: operations, kernel heads, and functions that recipes bring along."""

from generator_svc.recipes.cpp_operations import USES_ERF, USES_EXP, spell

ERF = """\
template <typename T> static inline T recipe_erf(T x) {  // rational, float32 accuracy
  x = __builtin_elementwise_min(__builtin_elementwise_max(x, T(-4.0f)), T(4.0f));
  const T s = x * x;
  T p = -2.72614225801306e-10f;
  p = p * s + 2.77068142495902e-08f;
  p = p * s - 2.10102402082508e-06f;
  p = p * s - 5.69250639462346e-05f;
  p = p * s - 7.34990630326855e-04f;
  p = p * s - 2.95459980854025e-03f;
  p = p * s - 1.60960333262415e-02f;
  T q = -1.45660718464996e-05f;
  q = q * s - 2.13374055278905e-04f;
  q = q * s - 1.68282697438203e-03f;
  q = q * s - 7.37332916720468e-03f;
  q = q * s - 1.42647390514189e-02f;
  return x * p / q;
}
"""
"""Rational approximation of the error function. Source: the one that XLA and Eigen use."""

EXP = """\
template <typename T> static inline T recipe_exp(T x) {  // 2^whole * polynomial
  x = x * 1.44269504f;
  x = x > T(-126.0f) ? x : T(-126.0f);
  x = x < T(127.0f) ? x : T(127.0f);
  const T shifted = x + 12582912.0f;  // 1.5 * 2^23: the sum's last bits are the whole part
  const T f = x - (shifted - 12582912.0f);
  T p = 1.5403530e-4f;
  p = p * f + 1.3333558e-3f;
  p = p * f + 9.6181291e-3f;
  p = p * f + 5.5504109e-2f;
  p = p * f + 2.4022651e-1f;
  p = p * f + 6.9314718e-1f;
  p = p * f + 1.0f;
  return recipe_scaled(p, shifted);
}
"""
"""Exponential with the Taylor series of 2^f on [-0.5, 0.5]: relative error below 4e-6."""

SCALED = """\
static inline float recipe_scaled(float p, float shifted) {  // adds the last bits to the exponent
  const unsigned bits = __builtin_bit_cast(unsigned, shifted) << 23;
  return __builtin_bit_cast(float, __builtin_bit_cast(unsigned, p) + bits);
}
"""

VECTOR_TYPES = """\
typedef float vec16 __attribute__((ext_vector_type(16), aligned(4)));  // at any element
typedef float line16 __attribute__((ext_vector_type(16)));         // at a whole cache line
typedef unsigned uvec16 __attribute__((ext_vector_type(16)));
static inline vec16 load(const float* from, int i) { return *(const vec16*)(from + i); }
static inline void store(float* to, int i, vec16 value) { *(vec16*)(to + i) = value; }
static inline void store(float* to, int i, float value) { to[i] = value; }
"""

VECTOR_STREAM = """\
static inline void stream(float* to, int i, vec16 value, bool lines) {
  if (lines) __builtin_nontemporal_store((line16)value, (line16*)(to + i));
  else *(vec16*)(to + i) = value;
}
static inline void stream(float* to, int i, float value, bool) { to[i] = value; }
"""

VECTOR_SCALED = """\
static inline vec16 recipe_scaled(vec16 p, vec16 shifted) {
  const uvec16 bits = __builtin_bit_cast(uvec16, shifted) << 23;
  return __builtin_bit_cast(vec16, __builtin_bit_cast(uvec16, p) + bits);
}
"""

_NAMES = {
    "abs": "__builtin_elementwise_abs",
    "sqrt": "__builtin_elementwise_sqrt",
    "log": "__builtin_elementwise_log",
    "fmax": "__builtin_elementwise_max",
    "pow": "__builtin_elementwise_pow",
}

_REDUCERS = {"sum": "sycl::plus<float>()", "max": "sycl::maximum<float>()",
             "min": "sycl::minimum<float>()"}  # fmt: skip


class SyclText:
    """Spells operations with the chosen exponential and error function.

    Args:
        polynomial_exp: Use our own exponential instead of the library's.
        polynomial_erf: Use our own error function instead of the library's; vectors always do.
        is_vector: Elements are explicit vectors.
    """

    def __init__(self, *, polynomial_exp: bool, polynomial_erf: bool, is_vector: bool) -> None:
        self._is_vector = is_vector
        self._names = {
            **_NAMES,
            "exp": "recipe_exp" if polynomial_exp else "__builtin_elementwise_exp",
            "erf": "recipe_erf" if polynomial_erf or is_vector else "sycl::erf",
        }

    def apply(self, operation: str, operands: list[str], element_type: str) -> str:
        """Return the expression of an operation on values of `element_type`."""
        return spell(operation, operands, element_type, self._names)

    def functions(self, used: frozenset[str]) -> str:
        """Return the types and functions that the operations in `used` need."""
        text = VECTOR_TYPES + VECTOR_STREAM if self._is_vector else ""
        if used & USES_EXP and self._names["exp"] == "recipe_exp":
            text += SCALED + (VECTOR_SCALED if self._is_vector else "") + EXP
        if used & USES_ERF and self._names["erf"] == "recipe_erf":
            text += ERF
        return text


def reduce_over(group: str, kind: str, value: str) -> str:
    """Return the reduction of `value` over the work-items of `group`."""
    return f"sycl::reduce_over_group({group}, {value}, {_REDUCERS[kind]})"


def kernel_head(name: str, parameters: list[str], *, sub_group: bool) -> str:
    """Return a one-dimensional kernel's head, with a fixed sub-group size SG when wanted."""
    properties = "SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))"
    if sub_group:
        properties += "\nSYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::sub_group_size<SG>))"
    return f'extern "C" {properties}\nvoid {name}({", ".join(parameters)}) {{\n'
