"""Which of SYCL's headers a source needs: to read all is four fifths of a small kernel's build.

The prelude has each behind a bit of `KERNEL_FOUNDRY_HEADERS`. This is a guess from the names in
the text: too many headers cost time, and a build that fails for want of one is repeated with all.
"""

import re
from collections.abc import Iterable
from typing import Final

ALL_HEADERS: Final = -1

_OPTION: Final = "-DKERNEL_FOUNDRY_HEADERS="
_MATH: Final = 16
_PARTS: Final = (
    (2, re.compile(r"accessor")),
    (4, re.compile(r"_over_group|_of_group|_from_group|_group_by_xor|shift_group|group_broadcast")),
    (8, re.compile(r"group_barrier")),
    (_MATH, re.compile(r"\b(half|bfloat16)\b")),  # functions of these are found by their arguments
    (32, re.compile(r"atomic_ref")),
    # vec, marray, float4, uchar16
    (
        64 | _MATH,
        re.compile(r"\b(vec|marray|(u?(char|short|int|long)|float|double|half)[1-9]\d?)\b"),
    ),
)
_QUALIFIED: Final = re.compile(r"\bsycl\s*::\s*(\w+)")
_ANYTHING: Final = re.compile(r"\busing\b|##|\bnamespace\b")
_ALONE_IN_NO_PART: Final = frozenset({
    "access", "bit_cast", "ext", "group", "id", "item", "maximum", "memory_order", "memory_scope",
    "minimum", "multiplies", "nd_item", "nd_range", "plus", "range", "sub_group",
})  # fmt: skip
_MATH_FUNCTIONS: Final = frozenset({
    "abs", "abs_diff", "acos", "acosh", "acospi", "add_sat", "all", "any", "asin", "asinh",
    "asinpi", "atan", "atan2", "atan2pi", "atanh", "atanpi", "cbrt", "ceil", "clamp", "clz",
    "copysign", "cos", "cosh", "cospi", "cross", "ctz", "degrees", "distance", "dot", "erf",
    "erfc", "exp", "exp10", "exp2", "expm1", "fabs", "fast_length", "fdim", "floor", "fma",
    "fmax", "fmin", "fmod", "fract", "frexp", "hadd", "half_precision", "hypot", "ilogb",
    "isequal", "isfinite", "isgreater", "isinf", "isless", "isnan", "isnormal", "ldexp",
    "length", "lgamma", "log", "log10", "log1p", "log2", "logb", "mad", "mad24", "mad_hi",
    "mad_sat", "max", "maxmag", "min", "minmag", "mix", "modf", "mul24", "mul_hi", "nan",
    "native", "nextafter", "normalize", "popcount", "pow", "pown", "powr", "radians",
    "remainder", "rhadd", "rint", "rootn", "rotate", "round", "rsqrt", "select", "sign",
    "signbit", "sin", "sincos", "sinh", "sinpi", "smoothstep", "sqrt", "step", "sub_sat", "tan",
    "tanh", "tgamma", "trunc", "upsample",
})  # fmt: skip


def header_option(source: str) -> str:
    """Return the compiler's option for the headers that a candidate's device code names."""
    return f"{_OPTION}{needed_headers(source)}"


def with_all_headers(options: Iterable[str]) -> tuple[str, ...]:
    """Return a compiler's options with all headers in place of some."""
    every = f"{_OPTION}{ALL_HEADERS}"
    return tuple(every if option.startswith(_OPTION) else option for option in options)


def needed_headers(source: str) -> int:
    """Return the bits of the headers that a candidate's device code names."""
    if _ANYTHING.search(source):
        return ALL_HEADERS
    bits = _bits_of(source)
    for name in _QUALIFIED.findall(source):
        if name in _MATH_FUNCTIONS:
            bits |= _MATH
        elif name not in _ALONE_IN_NO_PART and not _bits_of(name):
            return ALL_HEADERS
    return bits


def _bits_of(text: str) -> int:
    bits = 0
    for part, names in _PARTS:
        if names.search(text):
            bits |= part
    return bits
