"""The finding on an output that is wrong on unusual values.

Its hint follows first from the kind of the mismatch, and only then from the inputs: an error in the
last bits needs another fix than a NaN.
"""

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

import torch

from evaluator_svc.judge.comparison.checks import figures
from evaluator_svc.judge.comparison.range_hints import (
    FEW_BITS,
    HINTS,
    LOST_BITS,
    NO_NUMBER_HINTS,
    SWALLOWED,
)
from evaluator_svc.judge.comparison.verify import OutputCheck
from evaluator_svc.judge.comparison.wrong_element import element_text, values_text
from evaluator_svc.judge.draws.expected_output import ExpectedOutput
from evaluator_svc.judge.draws.shared_draw import SharedDraw
from evaluator_svc.judge.reference.formats import computable
from evaluator_svc.judge.tensors.tensor_parts import blocks_of, root_mean_square
from kernel_foundry.domain.admission import Distribution, ValueRange
from kernel_foundry.domain.finding import Finding, FindingKind, Severity
from kernel_foundry.domain.task import Tolerance

_PART: Final = 1 << 20
"""Elements looked at together: little memory may be left."""
_CLOSE: Final = 0.01
"""Largest error, in units of a row's scale plus the value, that lost bits explain (8 bits)."""
_MOSTLY: Final = 0.5
_UNIT: Final = Tolerance(atol=1.0, rtol=1.0)


class _Kind(Enum):
    NO_NUMBER = auto()
    """NaN or infinity where a number is expected."""
    SWALLOWED = auto()
    """A number where NaN or infinity is expected."""
    CLOSE = auto()
    """A number that lacks bits."""
    OTHER = auto()


@dataclass(slots=True, kw_only=True)
class _Mismatches:
    """The wrong elements of one output."""

    no_number: int = 0
    swallowed: int = 0
    others: int = 0
    largest: float = 0.0
    """Error of the others, in units of scale plus value."""
    first: int | None = None
    """Flat index of the first wrong element."""

    @property
    def count(self) -> int:
        return self.no_number + self.swallowed + self.others

    @property
    def kind(self) -> _Kind:
        if self.no_number:
            return _Kind.NO_NUMBER
        if self.swallowed > _MOSTLY * self.count:
            return _Kind.SWALLOWED
        return _Kind.CLOSE if self.largest <= _CLOSE else _Kind.OTHER


def range_finding(
    draw: SharedDraw, output: OutputCheck, value_range: ValueRange, where: str
) -> Finding:
    """Return the finding for a wrong output, with its first wrong element.

    Args:
        draw: The draw.
        output: Wrong in its first slot.
        value_range: What the inputs are, and what the tolerance is multiplied by.
        where: The inputs, in words.
    """
    distribution = value_range.distribution
    comparison, slot = output.comparisons[0], draw.output_slots[output.output]
    actual = draw.output_tensor(output.seed, output.output, output.slots[0]).reshape(-1)
    expected = draw.expected(output.seed)[output.output]
    tolerance = draw.tolerance.times(value_range.factor).of(output.output)
    any_number = distribution is Distribution.LEVEL
    # Rows with NaN have no scale of their own.
    scale = (
        root_mean_square(expected.tensor)
        if distribution is Distribution.NON_FINITE and not expected.is_exact
        else 0.0
    )
    found = _mismatches(actual, expected, tolerance, scale=scale, any_number=any_number)
    count = found.no_number if any_number else comparison.mismatch_count
    what = "no number" if 0 < found.no_number == found.count else "wrong"
    if largest := _largest_input(draw, output.seed):
        where += f", which are up to {largest:.2g} in size"
    message = (
        f"{slot.name} is {what} in {count} of {output.element_count} elements on {where},"
        f" workload {draw.workload}"
    )
    if found.first is not None:
        message += (
            f"; the first is {element_text(slot.name, slot.shape, found.first)}: "
            + values_text(actual, expected, tolerance, found.first)
        )
    return Finding(
        kind=FindingKind.VALUE_RANGE,
        severity=Severity.ERROR if value_range.is_binding else Severity.WARNING,
        message=message,
        evidence=figures(
            mismatched_elements=comparison.mismatch_count,
            nan_elements=comparison.nan_count,
            infinite_elements=comparison.inf_count,
            max_abs_error=comparison.max_abs_error,
            tolerance_factor=value_range.factor,
        ),
        hint=_hint(distribution, found.kind),
    )


def _mismatches(
    actual: torch.Tensor,
    expected: ExpectedOutput,
    tolerance: Tolerance,
    *,
    scale: float,
    any_number: bool,
) -> _Mismatches:
    """Return the wrong elements; with `any_number` only those that are no number.

    Args:
        actual: The output, flat.
        expected: The expected output, with as many elements.
        tolerance: The output's tolerance.
        scale: Least unit of an error; a row's own scale may be larger.
        any_number: Whether any number is right.
    """
    found = _Mismatches()
    values = expected.tensor.reshape(-1)
    for begin in range(0, values.numel(), _PART):
        part = slice(begin, begin + _PART)
        came, asked = computable(actual[part]), computable(values[part])
        no_number = ~came.isfinite() & asked.isfinite()
        differs = torch.ne(came, asked) & ~(came.isnan() & asked.isnan())
        wrong = no_number if any_number else differs & ~(came.isfinite() & asked.isfinite())
        swallowed = wrong & ~no_number
        if not any_number:
            places = (differs & ~wrong).nonzero().reshape(-1)
            error = (came[places].double() - asked[places].double()).abs_()
            is_apart = error > expected.bound_at(places + begin, tolerance)
            places, error = places[is_apart], error[is_apart]
            wrong[places] = True
            found.others += places.numel()
            if places.numel():
                units = expected.bound_at(places + begin, _UNIT).double().clamp_(min=scale)
                found.largest = max(found.largest, float((error / units).max()))
        found.no_number += int(no_number.sum())
        found.swallowed += int(swallowed.sum())
        if found.first is None and bool(wrong.any()):
            found.first = begin + int(wrong.nonzero()[0])
    return found


def _hint(distribution: Distribution, kind: _Kind) -> str:
    name = distribution.value
    if kind is _Kind.SWALLOWED:
        return SWALLOWED
    if kind is _Kind.NO_NUMBER:
        return NO_NUMBER_HINTS.get(name, HINTS.get(name, ""))
    if kind is _Kind.CLOSE and name in FEW_BITS:
        return LOST_BITS
    return HINTS.get(name, "")


def _largest_input(draw: SharedDraw, seed: int) -> float:
    """Return the largest magnitude among the finite numbers of a seed's inputs; 0 without any."""
    with draw.call_set(seed, None) as reference:
        parts = (
            computable(part)
            for tensor in reference.inputs
            if tensor.is_floating_point() and tensor.numel()
            for part in blocks_of(tensor)
        )
        return max(map(_largest, parts), default=0.0)


def _largest(part: torch.Tensor) -> float:
    return float(part.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs_().max())
