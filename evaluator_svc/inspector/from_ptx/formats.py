"""Which number formats a PTX module computes in."""

from collections.abc import Iterator
from typing import Final

from evaluator_svc.inspector.from_ptx.split_products import is_matrix_product, products_of_a_step
from evaluator_svc.policy.limits import SHORTENING_MASKS
from evaluator_svc.policy.number_formats import (
    BFLOAT16,
    FLOAT8,
    FLOAT16,
    FLOAT64,
    INT8,
    ROUGH_TANH,
    TF32,
    ObjectFacts,
)
from evaluator_svc.ptx import Instruction, Module

_FORMATS: Final = {
    **dict.fromkeys(("f16", "f16x2", "kind::f16"), FLOAT16),
    **dict.fromkeys(("bf16", "bf16x2"), BFLOAT16),
    **dict.fromkeys(("tf32", "kind::tf32"), TF32),
    **dict.fromkeys(("e4m3", "e5m2", "e4m3x2", "e5m2x2", "e2m1x2", "kind::f8f6f4"), FLOAT8),
    **dict.fromkeys(("e2m3x2", "e3m2x2", "kind::mxf8f6f4", "kind::mxf4"), FLOAT8),
}
_MATRIX: Final = frozenset({"mma", "wmma", "wgmma", "tcgen05"})
_BYTE_PRODUCTS: Final = frozenset({"dp4a", "dp2a"})
_MOVES: Final = frozenset({"ld", "ldu", "st", "mov", "shfl", "prmt", "selp", "cp", "ldmatrix"})
_OTHER_OPERANDS: Final = {"s8": INT8, "u8": INT8, "f64": FLOAT64}
"""Operand formats of matrix units beside the narrow floats."""
_WMMA_TYPES: Final = frozenset({"bf16", "tf32", "f64", "s8", "u8", "s4", "u4", "b1"})
"""Operand formats that `wmma` names; it names none for 16 bits."""


def number_formats(module: Module) -> ObjectFacts:
    """Return the facts of a PTX module."""
    formats: set[str] = set()
    matrix_formats: set[str] = set()
    uses_matrix_units = is_rough = masks_low_bits = False
    for _, instruction in module.instructions():
        formats.update(_named(instruction))
        uses_matrix_units |= instruction.opcode in _MATRIX
        if is_matrix_product(instruction):
            matrix_formats.update(_named(instruction))
            matrix_formats.update(
                _OTHER_OPERANDS[p] for p in _OTHER_OPERANDS if p in instruction.parts
            )
        is_rough |= instruction.parts[:3] == ("tanh", "approx", "f32")
        masks_low_bits |= instruction.opcode == "and" and _is_mask(instruction.operands)
    return ObjectFacts(
        formats=tuple(sorted(formats)),
        uses_matrix_units=uses_matrix_units,
        matrix_formats=tuple(sorted(matrix_formats)),
        products_of_a_step=products_of_a_step(module) if matrix_formats else 0,
        rough_functions=(ROUGH_TANH,) if is_rough else (),
        masks_low_bits=masks_low_bits,
    )


def _named(instruction: Instruction) -> Iterator[str]:
    parts = instruction.parts
    if parts[0] in _MOVES:
        return
    if parts[0] in _BYTE_PRODUCTS:
        yield INT8
    if parts[0] == "cvt":
        parts = parts[:-1]  # the last one is what it is converted from
    elif parts[:2] == ("wmma", "mma") and _WMMA_TYPES.isdisjoint(parts):
        yield FLOAT16
    for part in parts[1:]:
        if part in _FORMATS:
            yield _FORMATS[part]


def _is_mask(operands: tuple[str, ...]) -> bool:
    for operand in operands[1:]:
        digits = operand.removeprefix("-")
        if (
            digits.isdecimal()
            and len(digits) <= 10
            and int(operand) & 0xFFFF_FFFF in SHORTENING_MASKS
        ):
            return True
    return False
