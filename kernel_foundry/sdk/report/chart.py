"""The chart of speed-up over evaluations, as plain geometry that the template draws as SVG."""

import math
from dataclasses import dataclass

from kernel_foundry.domain.archive import ArchivedEvaluation
from kernel_foundry.domain.best import best_so_far

WIDTH, HEIGHT = 860, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 12, 14, 34


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """One evaluation, in pixels."""

    x: float
    y: float
    label: str
    is_passed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """An axis mark, in pixels along its axis."""

    at: float
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """Everything the template needs to draw."""

    dots: tuple[Dot, ...]
    best_path: str
    """SVG path of the speed-up of what was the best then; it falls where that was measured again
    and is slower."""
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    baseline_y: float
    """Height of speed-up 1, the fastest baseline."""
    left: float = _LEFT
    right: float = WIDTH - _RIGHT
    bottom: float = HEIGHT - _BOTTOM
    width: int = WIDTH
    height: int = HEIGHT


def speedup_chart(archived: tuple[ArchivedEvaluation, ...]) -> Chart:
    """Return the chart of `archived`; failures lie on the floor."""
    speedups = [t.evaluation.speedup if t.evaluation.passed else None for t in archived]
    top = max([s for s in speedups if s is not None] + [1.0]) * 1.08
    span = max(len(archived), 2)

    def x_of(sequence: int) -> float:
        return _LEFT + (sequence - 1) / (span - 1) * (WIDTH - _LEFT - _RIGHT)

    def y_of(speedup: float) -> float:
        return HEIGHT - _BOTTOM - speedup / top * (HEIGHT - _TOP - _BOTTOM)

    dots, path, best = [], "", 0.0
    entries = zip(archived, speedups, best_so_far(archived), strict=True)
    for position, (entry, speedup, leader) in enumerate(entries, start=1):
        x = x_of(position)
        label = f"#{entry.sequence} {entry.evaluation.outcome.name}"
        label += f" {speedup:.2f}×" if speedup is not None else ""
        dots.append(
            Dot(x=x, y=y_of(speedup or 0.0), label=label, is_passed=entry.evaluation.passed)
        )
        leading = (leader.evaluation.speedup or 0.0) if leader else 0.0
        if leading != best:
            path += (
                f"L{x:.1f},{y_of(best):.1f}L{x:.1f},{y_of(leading):.1f}"
                if path
                else (f"M{x:.1f},{y_of(leading):.1f}")
            )
            best = leading
    if path:
        path += f"L{x_of(max(len(archived), 1)):.1f},{y_of(best):.1f}"
    return Chart(
        dots=tuple(dots),
        best_path=path,
        x_ticks=tuple(Tick(at=x_of(n), label=str(n)) for n in _whole_ticks(len(archived))),
        y_ticks=tuple(Tick(at=y_of(v), label=f"{v:g}×") for v in _ticks(top)),
        baseline_y=y_of(1.0),
    )


def _ticks(top: float) -> list[float]:
    """Four to eight round values from 0 to `top`."""
    rough = top / 5
    magnitude = 10 ** math.floor(math.log10(rough))
    step = next(m * magnitude for m in (1, 2, 2.5, 5, 10) if m * magnitude >= rough)
    return [round(i * step, 6) for i in range(int(top / step) + 1)]


def _whole_ticks(count: int) -> list[int]:
    step = max(1, round(count / 8))
    return list(range(1, count + 1, step))
