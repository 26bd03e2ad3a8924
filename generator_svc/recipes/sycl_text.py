"""SYCL spellings: operations, literals, kernel heads, and functions that recipes bring along."""

ERF = """\
static inline float recipe_erf(float x) {  // rational approximation, float32 accuracy
  x = sycl::clamp(x, -4.0f, 4.0f);
  const float s = x * x;
  float p = -2.72614225801306e-10f;
  p = p * s + 2.77068142495902e-08f;
  p = p * s - 2.10102402082508e-06f;
  p = p * s - 5.69250639462346e-05f;
  p = p * s - 7.34990630326855e-04f;
  p = p * s - 2.95459980854025e-03f;
  p = p * s - 1.60960333262415e-02f;
  float q = -1.45660718464996e-05f;
  q = q * s - 2.13374055278905e-04f;
  q = q * s - 1.68282697438203e-03f;
  q = q * s - 7.37332916720468e-03f;
  q = q * s - 1.42647390514189e-02f;
  return x * p / q;
}
"""

EXP = """\
static inline float recipe_exp(float x) {  // 2^round * polynomial, float32 accuracy
  x = sycl::clamp(x * 1.44269504f, -126.0f, 127.0f);
  const float whole = sycl::rint(x), f = x - whole;
  float p = 1.5403530e-4f;
  p = p * f + 1.3333558e-3f;
  p = p * f + 9.6181291e-3f;
  p = p * f + 5.5504109e-2f;
  p = p * f + 2.4022651e-1f;
  p = p * f + 6.9314718e-1f;
  p = p * f + 1.0f;
  return p * sycl::bit_cast<float>(((int)whole + 127) << 23);
}
"""

_TEMPLATES = {
    "add": "({0} + {1})",
    "sub": "({0} - {1})",
    "mul": "({0} * {1})",
    "div": "({0} / {1})",
    "max": "({0} > {1} ? {0} : {1})",
    "min": "({0} < {1} ? {0} : {1})",
    "pow": "sycl::pow({0}, {1})",
    "neg": "(-{0})",
    "abs": "sycl::fabs({0})",
    "sqrt": "sycl::sqrt({0})",
    "rsqrt": "(1.0f / sycl::sqrt({0}))",
    "log": "sycl::log({0})",
    "tanh": "sycl::tanh({0})",
    "exp": "{exp}({0})",
    "erf": "{erf}({0})",
    "sigmoid": "(1.0f / (1.0f + {exp}(-{0})))",
    "silu": "({0} / (1.0f + {exp}(-{0})))",
    "gelu": "(0.5f * {0} * (1.0f + {erf}({0} * 0.70710678f)))",
    "gelu_tanh": "(0.5f * {0} * (1.0f + sycl::tanh(0.79788456f * ({0} + 0.044715f * {0} * {0} * {0}))))",
    "softplus": "({0} > 20.0f ? {0} : sycl::log1p({exp}({0})))",
    "mish": "({0} * sycl::tanh({0} > 20.0f ? {0} : sycl::log1p({exp}({0}))))",
}

USES_EXP = frozenset({"exp", "sigmoid", "silu", "softplus", "mish"})
"""Operations that call the exponential."""

USES_ERF = frozenset({"erf", "gelu"})
"""Operations that call the error function."""

_REDUCERS = {"sum": "sycl::plus<float>()", "max": "sycl::maximum<float>()",
             "min": "sycl::minimum<float>()"}  # fmt: skip

NEUTRAL = {"sum": "0.0f", "max": "-INFINITY", "min": "INFINITY"}
"""Neutral element of each reduction."""

_COMBINE = {"sum": "{0} += {1};", "max": "{0} = {1} > {0} ? {1} : {0};",
            "min": "{0} = {1} < {0} ? {1} : {0};"}  # fmt: skip


class SyclText:
    """Spells operations with the chosen exponential and error function.

    Args:
        polynomial_exp: Use our own exponential instead of the library's.
        polynomial_erf: Use our own error function instead of the library's.
    """

    def __init__(self, *, polynomial_exp: bool, polynomial_erf: bool) -> None:
        self._names = {
            "exp": "recipe_exp" if polynomial_exp else "sycl::exp",
            "erf": "recipe_erf" if polynomial_erf else "sycl::erf",
        }

    def apply(self, operation: str, operands: list[str]) -> str:
        """Return the expression of an operation."""
        return _TEMPLATES[operation].format(*operands, **self._names)

    def functions(self, used: frozenset[str]) -> str:
        """Return the functions that the operations in `used` need."""
        text = ""
        if used & USES_EXP and self._names["exp"] == "recipe_exp":
            text += EXP
        if used & USES_ERF and self._names["erf"] == "recipe_erf":
            text += ERF
        return text


def literal(number: float) -> str:
    """Return a float literal."""
    if number != number or number in (float("inf"), float("-inf")):
        return "NAN" if number != number else ("INFINITY" if number > 0 else "-INFINITY")
    text = repr(float(number))
    return f"{text}f" if number >= 0 else f"({text}f)"


def accumulate(kind: str, accumulator: str, value: str) -> str:
    """Return the statement that takes `value` into `accumulator`."""
    return _COMBINE[kind].format(accumulator, value)


def reduce_over(group: str, kind: str, value: str) -> str:
    """Return the reduction of `value` over the work-items of `group`."""
    return f"sycl::reduce_over_group({group}, {value}, {_REDUCERS[kind]})"


def kernel_head(name: str, parameters: list[str], *, sub_group: bool) -> str:
    """Return a one-dimensional kernel's head, with a fixed sub-group size SG when wanted."""
    properties = "SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))"
    if sub_group:
        properties += "\nSYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::sub_group_size<SG>))"
    return f'extern "C" {properties}\nvoid {name}({", ".join(parameters)}) {{\n'
