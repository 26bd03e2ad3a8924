"""PTX, NVIDIA's virtual assembly, read as it left the compiler.

`parse` takes hostile text. What is made of a module is in `evaluator_svc.inspector`.
"""

from evaluator_svc.ptx.module import (
    LABEL,
    Address,
    Function,
    Instruction,
    Location,
    Module,
    Variable,
)
from evaluator_svc.ptx.parse import PtxError, parse

__all__ = [
    "LABEL",
    "Address",
    "Function",
    "Instruction",
    "Location",
    "Module",
    "PtxError",
    "Variable",
    "parse",
]
