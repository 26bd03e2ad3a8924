"""Checks outputs on inputs with NaN and infinity, if the reference decides what becomes of them.

Only elements that are numbers in the reference are checked, and none of other references: whether a
NaN passes a maximum, or which elements it moves in a sorted row, differs among honest kernels.
"""

import dataclasses
from collections.abc import Sequence
from typing import Final

import torch

from evaluator_svc.judge.comparison.compare import compare_output
from evaluator_svc.judge.comparison.verify import OutputCheck
from evaluator_svc.judge.draws.expected_output import expect
from evaluator_svc.judge.draws.shared_draw import SharedDraw
from evaluator_svc.judge.reference.asked_of_missing import AskedOfMissing
from evaluator_svc.judge.reference.formats import FLOAT8

_LARGEST: Final = 0.75
"""Elements are checked up to this power of their format's largest number: numbers in place of
infinity are larger, and sums of them may overflow in another order."""


def wrong_numbers(
    draw: SharedDraw, seed: int, outputs: Sequence[OutputCheck], *, slot: int, factor: float
) -> list[OutputCheck]:
    """Return the outputs that are wrong where the reference gives a number, and decides about NaN.

    Args:
        draw: Has inputs with NaN and infinity.
        seed: Index of the draw's seed.
        outputs: Those that differ from the reference in some way.
        slot: Where the candidate wrote them.
        factor: What the tolerance is multiplied by.

    Raises:
        TaskInvalidError: the reference raises.
    """
    with AskedOfMissing() as asked:
        draw.reference_set(seed).run()
    if not asked.found:
        return []
    compared = [_on_numbers(draw, seed, output, slot, factor) for output in outputs]
    return [output for output in compared if output is not None and output.is_wrong]


def _on_numbers(
    draw: SharedDraw, seed: int, output: OutputCheck, slot: int, factor: float
) -> OutputCheck | None:
    expected = draw.expected(seed)[output.output]
    values = expected.tensor
    if expected.is_exact or values.dtype in FLOAT8:
        return None
    is_number = values.abs() <= torch.finfo(values.dtype).max ** _LARGEST
    actual = draw.output_tensor(seed, output.output, slot).where(is_number, 0.0).contiguous()
    numbers = expect(
        values.where(is_number, 0.0).contiguous(),
        is_scaled=expected.scale is not None,
        memory=expected.memory,
    )
    tolerance = draw.tolerance.times(factor).of(output.output)
    comparison = compare_output(actual.data_ptr(), numbers, tolerance)
    return dataclasses.replace(output, comparisons=(comparison,), allowed_counts=())
