"""PTX, NVIDIA's virtual assembly, read as it left the compiler.

Knows nothing of policy and of levels; `parse` takes hostile text.
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
