"""Mismatches that keep to the borders or the tail of an output, along one of its axes."""

from dataclasses import dataclass
from typing import Final

import torch

from kernel_foundry.domain.finding import Figure, Finding, FindingKind, Severity

_MAX_SHARE: Final = 0.25
"""Largest share of an axis that still is a border."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Border:
    """Wrong elements along one axis."""

    axis: int
    size: int
    head: int
    """Positions from the start that hold wrong elements; none further in."""
    tail: int
    """Positions from the end, likewise."""


def border_finding(name: str, wrong: torch.Tensor, counts: tuple[Figure, ...]) -> Finding | None:
    """Return a finding when the elements marked in `wrong` keep to a border, else None."""
    borders = [_border(wrong, axis) for axis in range(wrong.ndim)]
    found = [border for border in borders if border is not None]
    if not found:
        return None
    border = min(found, key=lambda b: (b.head + b.tail) / b.size)
    sides = [f"first {border.head}"] if border.head else []
    sides += [f"last {border.tail}"] if border.tail else []
    return Finding(
        kind=FindingKind.BORDER_MISMATCH,
        severity=Severity.ERROR,
        message=f"{name} is wrong only in the {' and '.join(sides)} of {border.size} positions"
        f" along axis {border.axis}",
        evidence=(
            Figure(name="axis", value=float(border.axis)),
            Figure(name="axis_size", value=float(border.size)),
            Figure(name="wrong_at_start", value=float(border.head)),
            Figure(name="wrong_at_end", value=float(border.tail)),
            *counts,
        ),
        hint="Look at the masked tail and at sizes that no block or vector width divides."
        if border.tail
        else "Look at the first step: initial values, padding, off by one.",
    )


def _border(wrong: torch.Tensor, axis: int) -> _Border | None:
    size = wrong.shape[axis]
    others = [i for i in range(wrong.ndim) if i != axis]
    marked = wrong.any(dim=others) if others else wrong
    right = (~marked).nonzero().flatten()
    if not len(right) or size < 4:
        return None
    head, tail = int(right[0]), size - 1 - int(right[-1])
    inside = marked[int(right[0]) : int(right[-1]) + 1]
    if bool(inside.any()) or head + tail == 0 or head + tail > max(_MAX_SHARE * size, 1):
        return None
    return _Border(axis=axis, size=size, head=head, tail=tail)
