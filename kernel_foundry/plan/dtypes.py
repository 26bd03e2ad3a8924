"""Element types by their canonical name, their size, and the other names people write.

The spelling in C is in `c_types.py`.
"""

from __future__ import annotations

from typing import Final

DTYPE_BYTES: Final[dict[str, int]] = {
    "float64": 8,
    "float32": 4,
    "float16": 2,
    "bfloat16": 2,
    "float8_e4m3fn": 1,
    "float8_e5m2": 1,
    "int64": 8,
    "int32": 4,
    "int16": 2,
    "int8": 1,
    "uint64": 8,
    "uint32": 4,
    "uint16": 2,
    "uint8": 1,
    "bool": 1,
}
"""Size of one element in bytes, by canonical dtype name."""

_ALIASES: Final[dict[str, str]] = {
    "double": "float64",
    "float": "float32",
    "half": "float16",
    "long": "int64",
    "int": "int32",
    "short": "int16",
}
"""torch's other names for the same types."""


def canonical_dtype(name: str) -> str | None:
    """Return the canonical name of "float32", "torch.half", "double"…, or None."""
    bare = name.removeprefix("torch.")
    if bare in DTYPE_BYTES:
        return bare
    return _ALIASES.get(bare)
