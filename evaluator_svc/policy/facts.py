"""Which narrow number formats object code computes in.

A fact and no verdict: a product split into several narrow ones may be as exact as a wide one.
Knows nothing of the task's own formats.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from evaluator_svc import ptx, spirv
from evaluator_svc.policy.split_products import is_matrix_product, products_of_a_step
from evaluator_svc.spirv.opcodes import MATRIX_PRODUCTS, Op
from kernel_foundry.domain.language import Language

FLOAT16: Final = "float16"
BFLOAT16: Final = "bfloat16"
TF32: Final = "TF32"
INT8: Final = "int8"
FLOAT8: Final = "float8"
"""Eight bits or fewer."""
ROUGH_TANH: Final = "tanh.approx"
"""The hardware's own, of 11 bits; its other functions of float32 have 20 and more."""
NARROW_FORMATS: Final = (BFLOAT16, FLOAT16, FLOAT8, TF32)

_PTX_FORMATS: Final = {
    **dict.fromkeys(("f16", "f16x2", "kind::f16"), FLOAT16),
    **dict.fromkeys(("bf16", "bf16x2"), BFLOAT16),
    **dict.fromkeys(("tf32", "kind::tf32"), TF32),
    **dict.fromkeys(("e4m3", "e5m2", "e4m3x2", "e5m2x2", "e2m1x2", "kind::f8f6f4"), FLOAT8),
    **dict.fromkeys(("e2m3x2", "e3m2x2", "kind::mxf8f6f4", "kind::mxf4"), FLOAT8),
}
_PTX_MATRIX: Final = frozenset({"mma", "wmma", "wgmma", "tcgen05"})
_PTX_MOVES: Final = frozenset({"ld", "ldu", "st", "mov", "shfl", "prmt", "selp", "cp", "ldmatrix"})
_OTHER_OPERANDS: Final = {"s8": INT8, "u8": INT8, "f64": "float64"}
"""Of matrix units, beside the narrow floats."""
_WMMA_TYPES: Final = frozenset({"bf16", "tf32", "f64", "s8", "u8", "s4", "u4", "b1"})
"""Of operands of `wmma`, which names none when they are of 16 bits."""

_SPIRV_CONVERSIONS: Final = {Op.CONVERT_F_TO_BF16_INTEL: BFLOAT16, Op.ROUND_F_TO_TF32_INTEL: TF32}
_SPIRV_FUNCTIONS: Final = {
    "ConvertFToBF16": BFLOAT16,
    "RoundFToTF32": TF32,
    "ConvertFToE4M3": FLOAT8,
    "ConvertFToE5M2": FLOAT8,
}
_SPIRV_ARITHMETIC: Final = frozenset(
    {Op.F_CONVERT, Op.F_ADD, Op.F_SUB, Op.F_MUL, Op.F_DIV, Op.VECTOR_TIMES_SCALAR, Op.EXT_INST}
)
_BFLOAT16_ENCODING: Final = 0
"""Operand after the width of a floating-point type."""
_MASKS: Final = frozenset((0xFFFF_FFFF << bits) & 0xFFFF_FFFF for bits in range(11, 21))
"""They leave 12 bits of a float32's fraction or fewer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectFacts:
    """What a candidate's object code computes in."""

    formats: tuple[str, ...] = ()
    """Formats narrower than float32 that it converts to or computes in, sorted: "bfloat16",
    "float16", "float8", "TF32"."""
    uses_matrix_units: bool = False
    matrix_formats: tuple[str, ...] = ()
    """Formats of the operands of matrix units, sorted; int8 and float64 among them."""
    products_of_a_step: int = 0
    """Narrow products that matrix units add up for one wide product; 0: it does not show."""
    rough_functions: tuple[str, ...] = ()
    """Instructions for functions of float32 whose results have far fewer bits: "tanh.approx"."""
    masks_low_bits: bool = False
    """Whether low bits of 32-bit words are cut off, as a float32's are to shorten it."""

    @property
    def narrow_products(self) -> tuple[str, ...]:
        """Formats of fewer bits than float32's in which a float32 product may be computed."""
        return (*self.formats, *(name for name in self.matrix_formats if name == INT8))

    @property
    def products_of_8_bits(self) -> tuple[str, ...]:
        """Formats of 8 bits in which a 16-bit product may be computed."""
        return tuple(name for name in self.narrow_products if name in (FLOAT8, INT8))

    @property
    def uses_16_bit_floats(self) -> bool:
        """Whether it computes in float16 or bfloat16, on matrix units or elsewhere."""
        return FLOAT16 in self.formats or BFLOAT16 in self.formats

    @property
    def uses_8_bit_floats(self) -> bool:
        """Whether it computes in formats of 8 bits or fewer."""
        return FLOAT8 in self.formats

    @property
    def uses_tf32(self) -> bool:
        """Whether it computes in TF32."""
        return TF32 in self.formats

    @property
    def uses_matrix_units_16_bit(self) -> bool:
        """Whether matrix units are used, and 16-bit formats are."""
        return self.uses_matrix_units and self.uses_16_bit_floats


def object_facts(codes: Iterable[bytes], language: Language) -> ObjectFacts:
    """Return the facts of a candidate's modules; those that cannot be read tell nothing.

    Args:
        codes: SPIR-V for SYCL, PTX for CUDA.
        language: Of the source.
    """
    several = [_of_ptx(code) if language is Language.CUDA else _of_spirv(code) for code in codes]
    products = {facts.products_of_a_step for facts in several if facts.matrix_formats}
    return ObjectFacts(
        formats=tuple(sorted({name for facts in several for name in facts.formats})),
        uses_matrix_units=any(facts.uses_matrix_units for facts in several),
        matrix_formats=tuple(sorted({n for facts in several for n in facts.matrix_formats})),
        products_of_a_step=products.pop() if len(products) == 1 else 0,
        rough_functions=tuple(sorted({n for facts in several for n in facts.rough_functions})),
        masks_low_bits=any(facts.masks_low_bits for facts in several),
    )


def _of_ptx(code: bytes) -> ObjectFacts:
    try:
        module = ptx.parse(code)
    except ptx.PtxError:
        return ObjectFacts()
    return facts_of_ptx(module)


def _of_spirv(code: bytes) -> ObjectFacts:
    try:
        module = spirv.parse(code)
    except spirv.SpirvError:
        return ObjectFacts()
    return facts_of_spirv(module)


def facts_of_ptx(module: ptx.Module) -> ObjectFacts:
    """Return the facts of a PTX module."""
    formats: set[str] = set()
    matrix_formats: set[str] = set()
    uses_matrix_units = is_rough = masks_low_bits = False
    for _, instruction in module.instructions():
        formats.update(_ptx_formats(instruction))
        uses_matrix_units |= instruction.opcode in _PTX_MATRIX
        if is_matrix_product(instruction):
            matrix_formats.update(_ptx_formats(instruction))
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


def _ptx_formats(instruction: ptx.Instruction) -> Iterator[str]:
    parts = instruction.parts
    if parts[0] in _PTX_MOVES:
        return
    if parts[0] == "cvt":
        parts = parts[:-1]  # the last one is what it is converted from
    elif parts[:2] == ("wmma", "mma") and _WMMA_TYPES.isdisjoint(parts):
        yield FLOAT16
    for part in parts[1:]:
        if part in _PTX_FORMATS:
            yield _PTX_FORMATS[part]


def _is_mask(operands: tuple[str, ...]) -> bool:
    for operand in operands[1:]:
        digits = operand.removeprefix("-")
        if digits.isdecimal() and len(digits) <= 10 and int(operand) & 0xFFFF_FFFF in _MASKS:
            return True
    return False


def facts_of_spirv(module: spirv.Module) -> ObjectFacts:
    """Return the facts of a SPIR-V module."""
    formats = {name for op, name in _SPIRV_CONVERSIONS.items() if op in module.opcodes}
    for found in module.imports:
        formats.update(name for part, name in _SPIRV_FUNCTIONS.items() if part in found.name)
    narrow = dict(_narrow_types(module))
    masks_low_bits = False
    for instruction in module.instructions():
        if instruction.opcode in _SPIRV_ARITHMETIC and instruction.type_id in narrow:
            formats.add(narrow[instruction.type_id])
        elif instruction.opcode == Op.BITWISE_AND and module.size_bytes(instruction.type_id) == 4:
            masks_low_bits |= any(module.constants.get(i) in _MASKS for i in instruction.operands)
    return ObjectFacts(
        formats=tuple(sorted(formats)),
        uses_matrix_units=not MATRIX_PRODUCTS.isdisjoint(module.opcodes),
        masks_low_bits=masks_low_bits,
    )


def _narrow_types(module: spirv.Module) -> Iterator[tuple[int, str]]:
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
