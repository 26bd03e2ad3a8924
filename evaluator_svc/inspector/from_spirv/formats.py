"""Which number formats a SPIR-V module computes in."""

from collections.abc import Iterator
from typing import Final

from evaluator_svc.policy.limits import SHORTENING_MASKS
from evaluator_svc.policy.number_formats import BFLOAT16, FLOAT8, FLOAT16, TF32, ObjectFacts
from evaluator_svc.spirv import Module
from evaluator_svc.spirv.opcodes import MATRIX_PRODUCTS, Op

_CONVERSIONS: Final = {Op.CONVERT_F_TO_BF16_INTEL: BFLOAT16, Op.ROUND_F_TO_TF32_INTEL: TF32}
_FUNCTIONS: Final = {
    "ConvertFToBF16": BFLOAT16,
    "RoundFToTF32": TF32,
    "ConvertFToE4M3": FLOAT8,
    "ConvertFToE5M2": FLOAT8,
}
_ARITHMETIC: Final = frozenset(
    {Op.F_CONVERT, Op.F_ADD, Op.F_SUB, Op.F_MUL, Op.F_DIV, Op.VECTOR_TIMES_SCALAR, Op.EXT_INST}
)
_BFLOAT16_ENCODING: Final = 0
"""Operand after the width of a floating-point type."""


def number_formats(module: Module) -> ObjectFacts:
    """Return the facts of a SPIR-V module."""
    formats = {name for op, name in _CONVERSIONS.items() if op in module.opcodes}
    for found in module.imports:
        formats.update(name for part, name in _FUNCTIONS.items() if part in found.name)
    narrow = dict(_narrow_types(module))
    masks_low_bits = False
    for instruction in module.instructions():
        if instruction.opcode in _ARITHMETIC and instruction.type_id in narrow:
            formats.add(narrow[instruction.type_id])
        elif instruction.opcode == Op.BITWISE_AND and module.size_bytes(instruction.type_id) == 4:
            masks_low_bits |= any(
                module.constants.get(i) in SHORTENING_MASKS for i in instruction.operands
            )
    return ObjectFacts(
        formats=tuple(sorted(formats)),
        uses_matrix_units=not MATRIX_PRODUCTS.isdisjoint(module.opcodes),
        masks_low_bits=masks_low_bits,
    )


def _narrow_types(module: Module) -> Iterator[tuple[int, str]]:
    """Iterate over the floating-point types of 16 bits, and vectors of them, with their formats."""
    scalars: dict[int, str] = {}
    for type_id, type_ in module.types.items():
        if type_.opcode == Op.TYPE_FLOAT and type_.operands[:1] == (16,):
            is_bfloat16 = type_.operands[1:2] == (_BFLOAT16_ENCODING,)
            scalars[type_id] = BFLOAT16 if is_bfloat16 else FLOAT16
    yield from scalars.items()
    for type_id, type_ in module.types.items():
        if type_.opcode == Op.TYPE_VECTOR and type_.operands and type_.operands[0] in scalars:
            yield type_id, scalars[type_.operands[0]]
