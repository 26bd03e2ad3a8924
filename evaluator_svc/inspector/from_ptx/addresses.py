"""Addresses of a PTX module that are computed from numbers alone.

Assumes of every register that it holds no more than numbers, and takes back what is wrong until
nothing is left to take back.
"""

from collections.abc import Iterator
from typing import Final

from evaluator_svc.ptx import LABEL, Function, Instruction, Module
from evaluator_svc.ptx.module import address_of, names_in

_ARITHMETIC: Final = frozenset(
    {
        *("mov", "cvt", "add", "sub", "mul", "mad", "neg", "abs", "min", "max", "div", "rem"),
        *("and", "or", "xor", "not", "shl", "shr", "shf", "bfi", "bfe", "prmt", "lop3", "selp"),
        "cvta",
    }
)
_ACCESSES: Final = frozenset({"ld", "ldu", "st", "atom", "red", "prefetch", "prefetchu"})
_OTHER_SPACES: Final = ("shared", "local", "param", "const")
"""Where small numbers are honest addresses, and nothing else is in reach."""
_PLACES: Final = ("%tid", "%ntid", "%ctaid", "%nctaid", "%laneid", "%warpid", "%smid")
"""Special registers that tell where in the grid a thread is; others may hold addresses."""


def absolute_accesses(module: Module) -> Iterator[Instruction]:
    """Iterate over accesses of global memory at addresses that come from no pointer."""
    for function in module.functions.values():
        numbers: frozenset[str] | None = None
        for instruction in function.body:
            if instruction.opcode not in _ACCESSES or _is_elsewhere(instruction):
                continue
            operand = next((o for o in instruction.operands if o.startswith("[")), "")
            if numbers is None:
                numbers = _numbers(function)
            if _is_absolute(operand, numbers):
                yield instruction


def _is_elsewhere(instruction: Instruction) -> bool:
    return any(part.startswith(_OTHER_SPACES) for part in instruction.parts)


def _is_absolute(operand: str, numbers: frozenset[str]) -> bool:
    address = address_of(operand)
    return address is not None and (not address.base or address.base in numbers)


def _numbers(function: Function) -> frozenset[str]:
    """Return the registers that hold nothing but numbers, other than zero, in every definition."""
    held: set[str] = set()
    zero: set[str] = set()
    used_by: dict[str, list[str]] = {}
    wrong: list[str] = []
    for instruction in function.body:
        if instruction.opcode == LABEL:
            continue
        inputs = _inputs(instruction)
        for name in instruction.results:
            (zero if inputs == ("0",) else held).add(name)
            for used in _names(inputs):
                used_by.setdefault(used, []).append(name)
            if any(operand.startswith("[") for operand in inputs):
                wrong.append(name)
    known = held | zero
    wrong += [n for n in used_by if n not in known and not n.startswith(_PLACES)]
    refuted = set(wrong)
    while wrong:
        for name in used_by.get(wrong.pop(), ()):
            if name not in refuted:
                refuted.add(name)
                wrong.append(name)
    return frozenset(held - refuted)


def _names(inputs: tuple[str, ...]) -> Iterator[str]:
    for operand in inputs:
        if not operand.startswith("["):
            yield from names_in(operand)


def _inputs(instruction: Instruction) -> tuple[str, ...]:
    """Return the operands of a result; if it is not a sum, a name that no register has."""
    into_other_space = instruction.opcode == "cvta" and "to" not in instruction.parts
    if instruction.opcode not in _ARITHMETIC or (into_other_space and _is_elsewhere(instruction)):
        return ("[]",)
    return instruction.inputs
