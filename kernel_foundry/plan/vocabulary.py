"""The words of the launch-plan language: functions, attributes, device facts.

One list, used by the checker (what may be written) and by the interpreter (what it means).
"""

from __future__ import annotations

from typing import Final

ARITHMETIC_FUNCTIONS: Final = (
    "cdiv", "min", "max", "abs", "int", "len", "next_pow2", "sqrt", "exp", "log2",
)  # fmt: skip
MEMORY_FUNCTIONS: Final = ("empty", "zeros", "local")
FUNCTIONS: Final = ARITHMETIC_FUNCTIONS + MEMORY_FUNCTIONS
TENSOR_ATTRIBUTES: Final = ("shape", "ndim", "dtype")
TENSOR_METHODS: Final = ("size", "numel", "stride")
DEVICE_ATTRIBUTES: Final = ("compute_units", "sub_group_size", "shared_bytes", "max_block")

MACRO_NAME_PATTERN: Final = r"[A-Z][A-Z0-9_]+"
"""TUNE and CONST names: macros of the device code."""

NO_VIEWS: Final = (
    "views and slices of tensors are not available: pass the tensor and an integer offset to the "
    "kernel"
)
NO_TENSOR_ARITHMETIC: Final = (
    "tensor arithmetic is not available: compute in a kernel; for a position inside a tensor, "
    "pass the tensor and an integer offset to the kernel"
)
OPS_FORM: Final = "a library call is y = ops.NAME(tensors, keywords), such as ops.linear(x, weight)"
