"""The speed-ups of a run as SVG: each candidate that passed, and the best so far."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from kernel_foundry.quantity_text import counted
from kernel_foundry.sdk.notebook.log_axis import LogAxis

_WIDTH: Final = 640
_HEIGHT: Final = 240
_LEFT: Final = 44
_BOTTOM: Final = 24


def gain_plot(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the speed-up over the fastest baseline by evaluation; empty where nothing passed.

    Args:
        rows: `row_object` of each evaluation, in order.
    """
    passed = [row for row in rows if row["outcome"] == "PASSED" and row["speedup"]]
    if not passed:
        return ""
    speedups = [row["speedup"] for row in passed]
    least, greatest = min(1.0, *speedups), max(1.0, *speedups)
    axis = LogAxis(least / 1.1, greatest * 1.1, _HEIGHT - _BOTTOM, 8)
    last: int = max(rows[-1]["sequence"], 2)

    def across(sequence: int) -> float:
        return _LEFT + (sequence - 1) / (last - 1) * (_WIDTH - _LEFT - 10)

    dots = {(round(across(r["sequence"])), round(axis.place(r["speedup"]))) for r in passed}
    ticks = "".join(
        f'<line x1="{_LEFT}" x2="{_WIDTH}" y1="{axis.place(tick):.1f}" y2="{axis.place(tick):.1f}" '
        f'stroke="currentColor" stroke-opacity="{0.5 if tick == 1 else 0.15}"/>'
        f'<text x="{_LEFT - 6}" y="{axis.place(tick) + 4:.1f}" text-anchor="end">{tick:.3g}×</text>'
        for tick in axis.ticks()
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'width="{_WIDTH}" style="max-width:100%" font-size="11" fill="currentColor" '
        f'aria-label="Speed-ups of {len(passed)} of {counted(last, "evaluation")}">'
        f"{ticks}"
        f'<path d="{"".join(f"M{x} {y}h0" for x, y in sorted(dots))}" stroke="#2a78d6" '
        'stroke-opacity="0.6" stroke-width="6" stroke-linecap="round"/>'
        f'<path d="{_best_so_far(rows, across, axis)}" fill="none" stroke="#b35900" '
        'stroke-width="2"/>'
        f'<text x="{_LEFT}" y="{_HEIGHT - 6}">1</text>'
        f'<text x="{_WIDTH - 10}" y="{_HEIGHT - 6}" text-anchor="end">evaluation {last}</text>'
        "</svg>"
    )


def _best_so_far(
    rows: Sequence[Mapping[str, Any]], across: Callable[[int], float], axis: LogAxis
) -> str:
    speedups = {row["sequence"]: row["speedup"] for row in rows}
    steps = [
        (across(row["sequence"]), axis.place(speedups[row["best"]]))
        for row in rows
        if row["best"] is not None and speedups[row["best"]]
    ]
    start = f"M{steps[0][0]:.1f} {steps[0][1]:.1f}"
    return start + "".join(f"H{x:.1f}V{y:.1f}" for (_, _), (x, y) in pairwise(steps))
