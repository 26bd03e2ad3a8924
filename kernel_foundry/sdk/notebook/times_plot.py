"""The times of a candidate and its baselines as SVG, with their intervals."""

from collections.abc import Sequence
from typing import Final

from kernel_foundry.domain.evaluation import WorkloadResult
from kernel_foundry.domain.speedup import TimeBounds
from kernel_foundry.sdk.notebook.log_axis import LogAxis
from kernel_foundry.sdk.notebook.markup import escaped
from kernel_foundry.sdk.verdict_text import duration

_WIDTH: Final = 640
_LABELS: Final = 260
"""Pixels for the names at the left."""
_LINE: Final = 20
_MOST: Final = 60
"""Most lines of a plot."""
_LONGEST: Final = 36
"""Characters of a name."""


def times_plot(workloads: Sequence[WorkloadResult]) -> str:
    """Return one line for each timed way of each workload; empty where none was timed.

    A dot is the median of a call, its bar the 95 % interval; the axis of times is logarithmic.
    """
    lines = _lines(workloads)[:_MOST]
    if not lines:
        return ""
    bounds = [value for _, _, times in lines for value in times]
    axis = LogAxis(min(bounds) / 1.1, max(bounds) * 1.1, _LABELS, _WIDTH - 70)
    height = _LINE * (len(lines) + 1)
    drawn = "".join(_drawn(line, axis, number) for number, line in enumerate(lines))
    ticks = "".join(
        f'<line x1="{axis.place(tick):.1f}" x2="{axis.place(tick):.1f}" y1="0" '
        f'y2="{height - _LINE}" stroke="currentColor" stroke-opacity="0.15"/>'
        f'<text x="{axis.place(tick):.1f}" y="{height - 5}" text-anchor="middle">'
        f"{escaped(duration(tick))}</text>"
        for tick in axis.ticks()
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {_WIDTH} {height}" '
        f'width="{_WIDTH}" style="max-width:100%" font-size="11" fill="currentColor" '
        f'aria-label="Times of the candidate and its baselines">{ticks}{drawn}</svg>'
    )


def _lines(workloads: Sequence[WorkloadResult]) -> list[tuple[str, bool, TimeBounds]]:
    """Of each its name, whether it is the candidate's, and its times."""
    lines = []
    for result in workloads:
        if result.call_bounds_ns is not None:
            lines.append((f"candidate, {result.workload}", True, result.call_bounds_ns))
            lines += [(b.name, False, b.timing.bounds_ns) for b in result.baselines]
    return lines


def _drawn(line: tuple[str, bool, TimeBounds], axis: LogAxis, number: int) -> str:
    name, is_candidate, (lower, median, upper) = line
    y = _LINE * number + _LINE // 2
    colour = "#2a78d6" if is_candidate else "#8a8a8a"
    label = name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"
    return (
        f'<text x="{_LABELS - 10}" y="{y + 4}" text-anchor="end">{escaped(label)}</text>'
        f'<line x1="{axis.place(lower):.1f}" x2="{axis.place(upper):.1f}" y1="{y}" y2="{y}" '
        f'stroke="{colour}" stroke-width="3"/>'
        f'<circle cx="{axis.place(median):.1f}" cy="{y}" r="4" fill="{colour}"/>'
        f'<text x="{axis.place(upper) + 8:.1f}" y="{y + 4}">{escaped(duration(median))}</text>'
    )
