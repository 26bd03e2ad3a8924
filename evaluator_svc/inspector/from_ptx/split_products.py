"""How many narrow products matrix units add up for each step of one wide product.

A wide operand that is split into parts meets the other one's parts: two parts of each and all
products but that of both low parts are three products a step, three parts of each and the six
larger products are six. In PTX a step is a set of operand fragments that are multiplied with each
other, so the share of pairs that are multiplied tells.
"""

from collections.abc import Iterator
from fractions import Fraction
from typing import Final

from evaluator_svc import ptx

_MATRIX_PRODUCTS: Final = (("wmma", "mma"), ("wgmma", "mma_async"), ("tcgen05", "mma"))
_PRODUCTS: Final = {Fraction(3, 4): 3, Fraction(2, 3): 6}
"""By the share of pairs of fragments that are multiplied, in every step alike."""


def products_of_a_step(module: ptx.Module) -> int:
    """Return the narrow products of one wide product's step; 0 where the pairs do not show it."""
    shares = {_share(step) for step in _steps(set(_pairs(module)))}
    return _PRODUCTS.get(shares.pop(), 0) if len(shares) == 1 else 0


def is_matrix_product(instruction: ptx.Instruction) -> bool:
    """Return whether an instruction multiplies on matrix units."""
    return instruction.opcode == "mma" or instruction.parts[:2] in _MATRIX_PRODUCTS


def _pairs(module: ptx.Module) -> Iterator[tuple[str, str]]:
    """Iterate over the fragments that are multiplied: left and right operand."""
    for function, instruction in module.instructions():
        operands = instruction.operands
        if is_matrix_product(instruction) and len(operands) > 2:
            yield f"a {function.name} {operands[1]}", f"b {function.name} {operands[2]}"


def _steps(pairs: set[tuple[str, str]]) -> Iterator[set[tuple[str, str]]]:
    """Iterate over the pairs that hang together by a fragment, one set for each step."""
    of_fragment: dict[str, list[tuple[str, str]]] = {}
    for pair in pairs:
        for fragment in pair:
            of_fragment.setdefault(fragment, []).append(pair)
    left = set(pairs)
    while left:
        waiting = [left.pop()]
        step = set(waiting)
        while waiting:
            for fragment in waiting.pop():
                found = left.intersection(of_fragment[fragment])
                left -= found
                step |= found
                waiting.extend(found)
        yield step


def _share(step: set[tuple[str, str]]) -> Fraction:
    left, right = {a for a, _ in step}, {b for _, b in step}
    return Fraction(len(step), len(left) * len(right))
