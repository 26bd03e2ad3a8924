"""Checks outputs on inputs with NaN and infinity, if the reference decides what becomes of them.

Only elements that are numbers in the reference are checked, and none of other references: whether a
NaN passes a maximum, or which elements it moves in a sorted row, differs among honest kernels. If
the reference decides about some of it alone (NaN, not infinity; of one input, not of another), the
rest may have no part in what is checked.
"""

import dataclasses
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Final

import torch

from evaluator_svc.judge.comparison.compare import compare_output
from evaluator_svc.judge.comparison.verify import OutputCheck
from evaluator_svc.judge.draws.expected_output import expect
from evaluator_svc.judge.draws.shared_draw import SharedDraw
from evaluator_svc.judge.inputs.input_set import InputSet
from evaluator_svc.judge.reference.asked_of_missing import AskedOfMissing, Missing
from evaluator_svc.judge.reference.formats import FLOAT8

_IN_PLACE: Final = (1.0, -1.0)
"""Numbers in place of what nothing is decided about: what it has a part in differs for one."""
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
    reference = draw.reference_set(seed)
    with AskedOfMissing(reference.inputs) as asked:
        results = reference.run()
    if not asked.found:
        return []
    others = [
        changed.run()
        for changed in (_without_unasked(reference, asked.found, number) for number in _IN_PLACE)
        if changed is not reference
    ]
    compared = []
    for output in outputs:
        own = results[output.output]
        is_checked = torch.ones_like(own, dtype=torch.bool)
        for other in others:
            is_checked &= other[output.output] == own
        compared.append(_on_numbers(draw, seed, output, is_checked, slot=slot, factor=factor))
    return [output for output in compared if output is not None and output.is_wrong]


def _without_unasked(
    reference: InputSet, asked: AbstractSet[tuple[int, Missing]], number: float
) -> InputSet:
    """Return a set with a number in place of all NaN and infinity that nothing is decided about."""

    def filled(index: int, tensor: torch.Tensor) -> torch.Tensor:
        if not tensor.is_floating_point() or tensor.dtype in FLOAT8:
            return tensor
        is_unasked = torch.zeros_like(tensor, dtype=torch.bool)
        if (index, Missing.NAN) not in asked:
            is_unasked |= tensor.isnan()
        if (index, Missing.INFINITY) not in asked:
            is_unasked |= tensor.isinf()
        return torch.where(is_unasked, number, tensor) if bool(is_unasked.any()) else tensor

    return reference.with_inputs([filled(*each) for each in enumerate(reference.inputs)])


def _on_numbers(
    draw: SharedDraw,
    seed: int,
    output: OutputCheck,
    is_checked: torch.Tensor,
    *,
    slot: int,
    factor: float,
) -> OutputCheck | None:
    expected = draw.expected(seed)[output.output]
    values = expected.tensor
    if expected.is_exact or values.dtype in FLOAT8:
        return None
    is_number = is_checked & (values.abs() <= torch.finfo(values.dtype).max ** _LARGEST)
    actual = draw.output_tensor(seed, output.output, slot).where(is_number, 0.0).contiguous()
    numbers = expect(
        values.where(is_number, 0.0).contiguous(),
        is_scaled=expected.scale is not None,
        memory=expected.memory,
    )
    tolerance = draw.tolerance.times(factor).of(output.output)
    comparison = compare_output(actual.data_ptr(), numbers, tolerance)
    return dataclasses.replace(output, comparisons=(comparison,), allowed_counts=())
