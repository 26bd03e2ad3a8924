"""A bounded reader of SPIR-V modules: what the compiler made of a candidate.

A module comes from a compiler that hostile text was fed to, so every length and id is checked:
`parse` gives a `Module` or raises `SpirvError`, and nothing else. What is made of a module is in
`evaluator_svc.inspector`.
"""

from evaluator_svc.spirv.module import (
    Function,
    GlobalVariable,
    Import,
    Instruction,
    Module,
    PointerType,
)
from evaluator_svc.spirv.parse import SpirvError, parse

__all__ = [
    "Function",
    "GlobalVariable",
    "Import",
    "Instruction",
    "Module",
    "PointerType",
    "SpirvError",
    "parse",
]
