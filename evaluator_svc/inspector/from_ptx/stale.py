"""Shared and local memory that a PTX kernel reads before it is written.

Knows what reads and writes memory, and not what is refused.
"""

from typing import Final

from evaluator_svc.inspector.from_ptx.flow import control_flow
from evaluator_svc.inspector.stale_reads import Accesses, reads_stale
from evaluator_svc.ptx import Function, Instruction, Module

SPACES: Final = ("shared", "local")
_OTHERS: Final = ("global", "param", "const", "shared", "local")
_READS: Final = frozenset({"ld", "ldu", "ldmatrix", "atom"})
_WRITES: Final = frozenset(
    {"st", "red", "atom", "stmatrix", "cp", "multimem", "wmma", "tcgen05", "mbarrier", "call"}
)


def stale_spaces(module: Module) -> tuple[str, ...]:
    """Return the kinds of memory that some kernel reads before anything is written there."""
    return tuple(
        space
        for space in SPACES
        if any(_is_stale(kernel, space) for kernel in module.kernels() if _has(kernel, space))
    )


def _has(kernel: Function, space: str) -> bool:
    return any(_reads(instruction, space) for instruction in kernel.body)


def _is_stale(kernel: Function, space: str) -> bool:
    flow = control_flow(kernel)
    accesses = {
        block: Accesses(
            reads=[i for i, instruction in enumerate(body) if _reads(instruction, space)],
            writes=[i for i, instruction in enumerate(body) if _writes(instruction, space)],
        )
        for block, body in flow.blocks.items()
    }
    return reads_stale({b: a for b, a in accesses.items() if a.reads or a.writes}, flow.successors)


def _reads(instruction: Instruction, space: str) -> bool:
    return instruction.opcode in _READS and _is_in(instruction, space)


def _writes(instruction: Instruction, space: str) -> bool:
    if instruction.opcode not in _WRITES:
        return False
    # An address that is not said to be elsewhere may be here.
    named = any(part.startswith(_OTHERS) for part in instruction.parts)
    return not named or _is_in(instruction, space)


def _is_in(instruction: Instruction, space: str) -> bool:
    return any(part.partition("::")[0] == space for part in instruction.parts)
