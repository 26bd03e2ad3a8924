"""The distribution of one output's errors against the exact result, and which output is worst."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np
import torch

from evaluator_svc.judge.tensors.relative_errors import relative_errors
from evaluator_svc.judge.tensors.scales import group_scale
from kernel_foundry.domain.evaluation import PrecisionAudit, effective_bits

_SAMPLE_ELEMENTS: Final = 1 << 18
"""Most errors that median and 99th percentile are taken of, evenly spaced."""

_RATIO: Final = 8.0
"""An output whose errors exceed the reference's by this much is worse than one that does not."""

_SMALL: Final = 1 / 8
"""Scale of a column, in units of the largest, below which its errors are examined on their own."""

_DEAD: Final = 1 / 1024
"""Scale below which a column is not examined: sums that cancel to less are as inexact as the row
that they come from."""

_LEAST_LINES: Final = 16
"""Fewest elements of a column that show its scale."""

_EXACT_SHARE: Final = 16
"""One line in so many is among those in which the reference is most exact."""

_LEAST_WIDTH: Final = 16
"""Fewest elements of such a line: the errors of a few are small by chance."""

_UNCLEAR_BITS: Final = 19.0
"""Bits of an output below which one line in 16 may have 17 or fewer: these have four times the
error at most."""


@dataclass(frozen=True, kw_only=True, eq=False)
class OutputLines:
    """Some lines of an output in several versions, of one shape, `(lines, width)`."""

    actual: torch.Tensor
    """The candidate's output."""
    expected: torch.Tensor
    """The reference in its own formats."""
    eager: torch.Tensor
    """As eager PyTorch computes it when it is timed; may be the same."""
    exact: torch.Tensor
    """The reference in float64, or what stands for it."""

    @cached_property
    def scale(self) -> torch.Tensor:
        """The root mean square of each group of `exact`."""
        return group_scale(self.exact)

    @cached_property
    def errors(self) -> "_Errors":
        """Those of the candidate."""
        stride = -(-self.exact.numel() // _SAMPLE_ELEMENTS)
        squares, largest, sample = 0.0, 0.0, []
        for part in relative_errors(self.actual, self.exact, self.scale):
            largest = max(largest, float(part.max()))
            sample.append(part.flatten()[::stride].clone())
            squares += float(part.square_().sum())
        rms = math.sqrt(squares / self.exact.numel())
        return _Errors(sample=torch.cat(sample), largest=largest, rms=rms)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Errors:
    """Relative errors of an output."""

    sample: torch.Tensor
    """Some of all errors, evenly spaced."""
    largest: float
    rms: float


def least_exact(outputs: Sequence[OutputLines]) -> PrecisionAudit | None:
    """Return the audit of the least exact output; None: there is none."""
    return max(map(_audit, outputs), key=_badness, default=None)


def small_columns(output: OutputLines) -> OutputLines | None:
    """Return the columns that are small beside others: a row's scale is not theirs.

    None where all are about as large.
    """
    if output.exact.ndim != 2 or len(output.exact) < _LEAST_LINES:
        return None
    scale = output.exact.double().square().mean(0).sqrt_().nan_to_num_(posinf=0.0)
    largest = float(scale.max())
    chosen = scale.lt(_SMALL * largest).logical_and_(scale.gt(_DEAD * largest)).nonzero().flatten()
    if not len(chosen):
        return None
    expected = output.expected[:, chosen]
    return replace(
        output,
        actual=output.actual[:, chosen],
        expected=expected,
        eager=expected if output.eager is output.expected else output.eager[:, chosen],
        exact=output.exact[:, chosen],
    )


def has_uneven_lines(output: OutputLines) -> bool:
    """Return whether an inexact output has lines in which the reference is far more exact."""
    lines, width = output.exact.shape if output.exact.ndim == 2 else (0, 0)
    if width < _LEAST_WIDTH or lines < _EXACT_SHARE * _LEAST_LINES:
        return False
    if effective_bits(output.errors.rms) >= _UNCLEAR_BITS:
        return False
    squares = _line_squares(output.expected, output.exact)
    return float(_most_exact(squares)[0].mean()) * _RATIO**2 <= float(squares.mean())


def most_exact_lines(output: OutputLines, moved: torch.Tensor) -> OutputLines:
    """Return the lines in which the reference is most exact, and its errors there at their largest.

    A run whose every rounding was moved shows which lines these are: what is exact by chance
    in one run is not in both.

    Args:
        output: The output.
        moved: The reference's lines in that run.
    """
    squares = _line_squares(moved, output.exact)
    chosen = _most_exact(squares)[1]
    own = _line_squares(output.expected, output.exact)[chosen].mean()
    expected = (moved if squares[chosen].mean() > own else output.expected)[chosen]
    return OutputLines(
        actual=output.actual[chosen],
        expected=expected,
        eager=expected,
        exact=output.exact[chosen],
    )


def _line_squares(actual: torch.Tensor, exact: torch.Tensor) -> torch.Tensor:
    """Return the mean square of the relative errors of each line."""
    return torch.cat([part.square_().mean(-1) for part in relative_errors(actual, exact)])


def _most_exact(squares: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    count = len(squares) // _EXACT_SHARE
    values, places = squares.topk(count, largest=False)
    return values, places


def rms_error(
    actual: torch.Tensor, exact: torch.Tensor, scale: torch.Tensor | None = None
) -> float:
    """Return the root mean square of the relative errors; arguments as for `relative_errors`."""
    squares = sum(float(part.square_().sum()) for part in relative_errors(actual, exact, scale))
    return math.sqrt(squares / exact.numel())


def _audit(output: OutputLines) -> PrecisionAudit:
    exact, found = output.exact, output.errors
    median, p99 = _quantiles(found.sample, (0.5, 0.99))
    reference = rms_error(output.expected, exact, output.scale)
    is_eager = output.eager is output.expected
    return PrecisionAudit(
        median_error=median,
        p99_error=p99,
        max_error=found.largest,
        rms_error=found.rms,
        reference_rms_error=reference,
        eager_rms_error=reference if is_eager else rms_error(output.eager, exact, output.scale),
        effective_bits=effective_bits(found.rms),
        element_count=exact.numel(),
    )


def _quantiles(values: torch.Tensor, shares: Sequence[float]) -> tuple[float, ...]:
    places = [int(share * (len(values) - 1)) for share in shares]
    # Selected, not sorted: that is ten times the work.
    selected = np.partition(values.cpu().numpy(), places)
    return tuple(float(selected[place]) for place in places)


def _badness(audit: PrecisionAudit) -> tuple[bool, float]:
    return audit.rms_error >= _RATIO * audit.reference_rms_error, audit.rms_error
