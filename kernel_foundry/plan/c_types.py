"""C and C++ spellings of the element and number types, and which numbers fit them.

Linux x86-64: long is 64 bits, char is signed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Final

from kernel_foundry.plan.dtypes import DTYPE_BYTES

UNKNOWN: Final = "unknown"
"""A type that the scan cannot resolve: pointer checks are skipped for it."""
VOID: Final = "void"

_SPELLINGS: Final[dict[str, tuple[str, ...]]] = {
    "float64": ("double", "float64_t"),
    "float32": ("float", "float32_t"),
    "float16": ("half", "__half", "nv_half", "_Float16", "float16_t"),
    "bfloat16": ("bfloat16", "__nv_bfloat16", "nv_bfloat16", "ext::oneapi::bfloat16",
                 "oneapi::bfloat16", "syclext::bfloat16", "__bf16"),
    "float8_e4m3fn": ("__nv_fp8_e4m3", "float8_e4m3fn"),
    "float8_e5m2": ("__nv_fp8_e5m2", "float8_e5m2"),
    "int64": ("long", "long int", "long long", "long long int", "signed long", "signed long long",
              "int64_t", "ptrdiff_t", "ssize_t", "intptr_t"),
    "int32": ("int", "signed", "signed int", "int32_t"),
    "int16": ("short", "short int", "signed short", "int16_t"),
    "int8": ("char", "signed char", "int8_t"),
    "uint64": ("unsigned long", "unsigned long int", "unsigned long long",
               "unsigned long long int", "long unsigned int", "uint64_t", "size_t", "ulong",
               "uintptr_t"),
    "uint32": ("unsigned", "unsigned int", "uint32_t", "uint"),
    "uint16": ("unsigned short", "unsigned short int", "uint16_t", "ushort"),
    "uint8": ("unsigned char", "uint8_t", "uchar", "byte", "__nv_fp8_storage_t"),
    "bool": ("bool",),
    VOID: (VOID,),
}  # fmt: skip
_BY_SPELLING: Final = {
    spelling: dtype for dtype, spellings in _SPELLINGS.items() for spelling in spellings
}

_VECTOR_BASES: Final = {
    "char": "int8", "uchar": "uint8", "short": "int16", "ushort": "uint16", "int": "int32",
    "uint": "uint32", "long": "int64", "ulong": "uint64", "longlong": "int64",
    "ulonglong": "uint64", "float": "float32", "double": "float64", "half": "float16",
}  # fmt: skip
_VECTOR_NAME: Final = re.compile(r"(u?(?:char|short|int|long|longlong)|float|double|half)(\d+)")
_PACKED: Final = {
    "__half2": ("float16", 2),
    "__nv_bfloat162": ("bfloat16", 2),
    "nv_bfloat162": ("bfloat16", 2),
    "__nv_fp8x2_e4m3": ("float8_e4m3fn", 2),
    "__nv_fp8x4_e4m3": ("float8_e4m3fn", 4),
    "__nv_fp8x2_e5m2": ("float8_e5m2", 2),
    "__nv_fp8x4_e5m2": ("float8_e5m2", 4),
}
_VECTOR_TEMPLATE: Final = re.compile(r"(?:vec|marray)\s*<(.+),\s*(\w+)\s*>")
_NAMESPACES: Final = re.compile(r"(?<![\w:])(?:::)?(?:sycl|std|cuda::std|cuda)::")
_MAX_SUBSTITUTIONS: Final = 16

_INTEGER_BITS: Final = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
_FLOAT_MAX: Final = {
    "float64": 1.7976931348623157e308,
    "float32": 3.4028235677973366e38,
    "float16": 65519.99,
    "bfloat16": 3.3961775292304957e38,
}
"""The largest magnitude that still rounds to a finite number of the type."""


def canonical_type(text: str, aliases: Mapping[str, str]) -> tuple[str, int]:
    """Resolve a C type.

    Args:
        text: Type without qualifiers, pointers and name.
        aliases: Macros and typedef names → replacement text.

    Returns:
        Canonical dtype name, "void" or "unknown"; and the number of lanes (1 unless a vector).
    """
    resolved = " ".join(text.split())
    for _ in range(_MAX_SUBSTITUTIONS):
        plain = _plain(resolved)
        found = _lookup(plain, aliases)
        if found is not None:
            return found
        replaced = re.sub(r"\b[A-Za-z_]\w*\b", lambda m: aliases.get(m[0], m[0]), resolved)
        if replaced == resolved or len(replaced) > 200:
            break
        resolved = replaced
    return UNKNOWN, 1


def integer_range(c_type: str) -> tuple[int, int] | None:
    """Return the smallest and largest value of an integer type, or None for another type."""
    if c_type == "bool":
        return 0, 1
    unsigned = c_type.startswith("u")
    bits = _INTEGER_BITS.get(c_type.removeprefix("u"))
    if bits is None:
        return None
    return (0, 2**bits - 1) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def float_fits(c_type: str, value: float) -> bool:
    """Return whether `value` stays finite as `c_type`, or is NaN or infinite by intent."""
    return not math.isfinite(value) or abs(value) <= _FLOAT_MAX[c_type]


def is_number_type(c_type: str) -> bool:
    """Return whether a number can be passed as `c_type`."""
    return c_type in DTYPE_BYTES and not c_type.startswith("float8")


def _plain(text: str) -> str:
    words = [word for word in text.split() if word not in ("const", "volatile", "struct")]
    return _NAMESPACES.sub("", " ".join(words))


def _lookup(plain: str, aliases: Mapping[str, str]) -> tuple[str, int] | None:
    if plain in aliases:  # the source's own alias hides a type of that name
        return None
    if plain in _BY_SPELLING:
        return _BY_SPELLING[plain], 1
    if plain in _PACKED:
        return _PACKED[plain]
    match = _VECTOR_NAME.fullmatch(plain)
    if match:
        return _VECTOR_BASES[match[1]], int(match[2])
    match = _VECTOR_TEMPLATE.fullmatch(plain)
    if match and match[2].isdecimal():
        return canonical_type(match[1], {})[0], int(match[2])
    return None
