"""Why an output is wrong: the pattern of its mismatches, as findings with numbers and a hint.

The patterns are tried from the most to the least telling; the first that fits is reported.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import torch

from evaluator_svc.judge.comparison.borders import border_finding
from evaluator_svc.judge.comparison.wrong_element import element_text, values_text
from evaluator_svc.judge.draws.expected_output import ExpectedOutput
from evaluator_svc.judge.reference.formats import computable
from evaluator_svc.messages.draw import POISON_BYTES
from kernel_foundry.domain.finding import Figure, Finding, FindingKind, Severity
from kernel_foundry.domain.task import Tolerance
from kernel_foundry_native import _core as native

MAX_EXPLAINED_ELEMENTS: Final = 1 << 26
"""Largest output whose pattern is looked at; the counts are exact in any case."""

_ALIKE: Final = 0.99
"""Share of elements that must fit a pattern."""

_FACTOR_SPREAD: Final = 1e-3
"""Relative spread of actual over expected that still is one factor."""

_NO_FACTOR: Final = 4e-3
"""A factor this close to 1 is no forgotten scale, but values cut to 8 bits or more."""

_FEW: Final = 16
"""Fewer wrong elements that are close keep to a border by chance."""

_PRECISION_RATIO: Final = 0.03
"""Largest error, in units of the row's scale, that lower precision (8 bits) explains."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatch:
    """One wrong output of one run."""

    name: str
    comparison: native.Comparison
    actual: torch.Tensor
    expected: ExpectedOutput
    tolerance: Tolerance
    seed_count: int
    wrong_seed_count: int
    shows_values: bool
    """Whether elements may be told: those of a held-out workload are not."""

    @property
    def mismatch_count(self) -> int:
        """Elements outside the tolerance."""
        return int(self.comparison.mismatch_count)

    @property
    def share(self) -> float:
        """Share of wrong elements."""
        return self.mismatch_count / max(self.actual.numel(), 1)

    def error(self) -> torch.Tensor:
        """Return |actual - expected| in float32, of float64 outputs in float64."""
        is_double = self.expected.tensor.dtype == torch.float64
        wide = torch.float64 if is_double else torch.float32
        return (self.actual.to(wide) - self.expected.tensor.to(wide)).abs_()

    def wrong(self) -> torch.Tensor:
        """Return which elements are outside the tolerance."""
        actual, expected = map(computable, (self.actual, self.expected.tensor))
        if self.expected.is_exact:
            return torch.ne(actual, expected)
        same = torch.eq(actual, expected) | (actual.isnan() & expected.isnan())
        close = torch.le(self.error(), self.expected.bound(self.tolerance))
        return torch.logical_not(same | close)

    def unwritten(self) -> torch.Tensor:
        """Return which wrong elements still hold what outputs are filled with."""
        if not self.actual.numel():
            return torch.zeros_like(self.actual, dtype=torch.bool)
        size = self.actual.element_size()
        held = self.actual.reshape(-1, 1).view(torch.uint8).reshape(-1, size)
        untouched = torch.stack([torch.eq(held, b).all(dim=1) for b in POISON_BYTES]).any(dim=0)
        return untouched.reshape(self.actual.shape) & self.wrong()


def explain(mismatch: Mismatch) -> tuple[Finding, ...]:
    """Return the finding for the first pattern that fits; never empty."""
    finding = None
    if mismatch.actual.numel() <= MAX_EXPLAINED_ELEMENTS:
        finding = next(filter(None, (pattern(mismatch) for pattern in _PATTERNS)), None)
    finding = finding or _unexplained(mismatch)
    if finding.kind is FindingKind.OUTPUT_NOT_WRITTEN:
        return (finding,)  # it says where that begins, and what is there is ours
    return (replace(finding, message=f"{finding.message}; {_first_wrong(mismatch)}"),)


def modified_finding(names: tuple[str, ...]) -> Finding:
    """Return the finding for inputs that a candidate changed."""
    return Finding(
        kind=FindingKind.INPUT_MODIFIED,
        severity=Severity.ERROR,
        message=f"changed {', '.join(names)}, which must stay as they are",
        evidence=(Figure(name="modified_tensors", value=float(len(names))),),
        hint="Declare inputs `const` and write to `out` or to scratch from `empty(…)` only.",
    )


def stray_finding(names: tuple[str, ...]) -> Finding:
    """Return the finding for writes around tensors."""
    return Finding(
        kind=FindingKind.STRAY_WRITE,
        severity=Severity.ERROR,
        message=f"wrote beyond the end of {', '.join(names)}, or before its beginning",
        evidence=(Figure(name="touched_tensors", value=float(len(names))),),
        hint="Check every index of a store against the tensor's size, above all in the last"
        " work-group and with vectors.",
    )


def unstable_finding(*, is_wrong: bool, is_compared: bool = True) -> Finding:
    """Return the finding for runs on the same inputs that gave different bytes."""
    are_right = ", all within the tolerance" if is_compared else ""
    return Finding(
        kind=FindingKind.NONDETERMINISM,
        severity=Severity.ERROR if is_wrong else Severity.INFO,
        message="runs on the same inputs gave different results" + ("" if is_wrong else are_right),
        hint="Look for a missing barrier, scratch or an output read before it is written, or two"
        " work-items that write the same element."
        if is_wrong
        else "",
    )


def _unwritten(mismatch: Mismatch) -> Finding | None:
    unwritten = mismatch.unwritten()
    count = int(unwritten.sum())
    if not count:
        return None
    total = unwritten.numel()
    first = int(unwritten.flatten().nonzero()[0])
    evidence = (
        Figure(name="unwritten_elements", value=float(count)),
        Figure(name="unwritten_share", value=count / total),
        Figure(name="first_unwritten_index", value=float(first)),
    )
    if count == total:
        message = f"{mismatch.name} was never written"
        hint = "Launch a kernel that stores every element of it, with the output as argument."
    else:
        is_tail = first + count == total
        where = "the tail" if is_tail else "part"
        message = f"{where} of {mismatch.name} was never written: {count} of {total} elements"
        hint = "Cover sizes that no block divides: round the grid up with cdiv and mask the rest."
    return Finding(
        kind=FindingKind.OUTPUT_NOT_WRITTEN,
        severity=Severity.ERROR,
        message=message,
        evidence=evidence,
        hint=hint,
    )


def _not_a_number(mismatch: Mismatch) -> Finding | None:
    actual, expected = map(computable, (mismatch.actual, mismatch.expected.tensor))
    if not actual.is_floating_point():
        return None
    count = int((~actual.isfinite() & expected.isfinite()).sum())
    if not count:
        return None
    nan_count = int(actual.isnan().sum())
    return _finding(
        mismatch,
        FindingKind.NOT_A_NUMBER,
        f"{mismatch.name} holds NaN or infinity in {count} of {actual.numel()} elements",
        "Look for exp of large values (subtract the maximum), division by zero, the root of a"
        " negative number, or scratch that is read before it is written.",
        Figure(name="nan_elements", value=float(nan_count)),
        Figure(name="infinite_elements", value=float(count - min(nan_count, count))),
    )


def _constant_factor(mismatch: Mismatch) -> Finding | None:
    expected = mismatch.expected.tensor.float()
    if mismatch.expected.is_exact or mismatch.share < 0.5:
        return None
    clear = expected.abs() > 0.1 * expected.square().mean().sqrt()
    ratio = mismatch.actual.float()[clear] / expected[clear]
    if ratio.numel() < 2:
        return None
    factor = float(ratio.median())
    alike = (ratio - factor).abs() <= _FACTOR_SPREAD * abs(factor)
    if factor == 0.0 or abs(factor - 1.0) <= _NO_FACTOR or float(alike.float().mean()) < _ALIKE:
        return None
    return _finding(
        mismatch,
        FindingKind.CONSTANT_FACTOR,
        f"{mismatch.name} is {factor:.6g} times what it should be",
        "Look for a missing or doubled scale: the count in a mean, a square root, a 0.5.",
        Figure(name="actual_over_expected", value=factor),
    )


def _transposed(mismatch: Mismatch) -> Finding | None:
    shape = mismatch.actual.shape
    if len(shape) < 2 or min(shape[-2:]) < 2:
        return None
    turned = mismatch.actual.reshape(*shape[:-2], shape[-1], shape[-2]).transpose(-1, -2)
    bound = mismatch.expected.bound(mismatch.tolerance)
    fits = (turned.float() - mismatch.expected.tensor.float()).abs_() <= bound
    share = float(fits.float().mean())
    if share < _ALIKE or share <= 1.0 - mismatch.share:
        return None
    return _finding(
        mismatch,
        FindingKind.TRANSPOSED,
        f"{mismatch.name} is right when its last two axes are exchanged",
        "Swap row and column in the store's index (x is the fastest dimension).",
        Figure(name="share_right_when_transposed", value=share),
    )


def _borders(mismatch: Mismatch) -> Finding | None:
    if mismatch.mismatch_count < _FEW and _precision(mismatch) is not None:
        return None  # where so few are beyond a tolerance is chance
    return border_finding(mismatch.name, mismatch.wrong(), _counts(mismatch))


def _precision(mismatch: Mismatch) -> Finding | None:
    expected = mismatch.expected
    if expected.is_exact:
        return None
    scale = expected.tensor.float().abs()
    scale = scale + (scale.square().mean().sqrt() if expected.scale is None else expected.scales())
    worst = float((mismatch.error() / scale).max())
    if not worst <= _PRECISION_RATIO:
        return None
    return _finding(
        mismatch,
        FindingKind.PRECISION,
        f"{mismatch.name} is close but not close enough: errors up to {worst:.2g} of its scale"
        f" where {mismatch.tolerance.rtol:.2g} is allowed",
        "Accumulate in float32 or wider, avoid native_ and half-precision functions, and subtract"
        " means before squaring.",
        Figure(name="largest_error_over_scale", value=worst),
    )


_PATTERNS: Final[tuple[Callable[[Mismatch], Finding | None], ...]] = (
    _unwritten,
    _not_a_number,
    _constant_factor,
    _transposed,
    _borders,
    _precision,
)


def _unexplained(mismatch: Mismatch) -> Finding:
    count, total = mismatch.mismatch_count, mismatch.actual.numel()
    extent = "all" if mismatch.share > _ALIKE else f"{count} of {total}"
    hint = "Check the formula against the reference, parameters and their order first."
    if mismatch.wrong_seed_count < mismatch.seed_count:
        hint = "It is right on other inputs: look for a case that depends on values."
    return _finding(
        mismatch,
        FindingKind.MISMATCH,
        f"{extent} elements of {mismatch.name} are wrong",
        hint,
    )


def _first_wrong(mismatch: Mismatch) -> str:
    index = int(mismatch.comparison.first_mismatch)
    text = f"the first is {element_text(mismatch.name, tuple(mismatch.actual.shape), index)}"
    if not mismatch.shows_values:
        return text
    actual = mismatch.actual.reshape(-1)
    values = values_text(actual, mismatch.expected, mismatch.tolerance, index)
    return f"{text}: {values}"


def _finding(
    mismatch: Mismatch, kind: FindingKind, message: str, hint: str, *evidence: Figure
) -> Finding:
    return Finding(
        kind=kind,
        severity=Severity.ERROR,
        message=message,
        evidence=(*evidence, *_counts(mismatch)),
        hint=hint,
    )


def _counts(mismatch: Mismatch) -> tuple[Figure, ...]:
    largest = float(mismatch.comparison.max_abs_error)
    numbers = {
        "mismatched_elements": float(mismatch.mismatch_count),
        "mismatched_share": mismatch.share,
        "max_abs_error": largest,
        "first_mismatch_index": float(mismatch.comparison.first_mismatch),
        "wrong_seeds": float(mismatch.wrong_seed_count),
    }
    return tuple(
        Figure(name=name, value=value) for name, value in numbers.items() if math.isfinite(value)
    )
