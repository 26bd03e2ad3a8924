"""The chart of best speed over evaluations of several strategies, as plain geometry."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from landscapes.strategy_results import LandscapeResult

COLOURS: Final = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#e69f00",
    "#56b4e9",
    "#8c6d31",
    "#7f7f7f",
    "#6a3d9a",
)
"""Told apart by the colour-blind too (Source: Okabe and Ito 2008, its yellow and black replaced:
they vanish on light or dark pages; a ninth for all strategies with their ablations)."""

EARLY_SHARE: Final = 0.05
"""The axis starts at what the slowest strategy has after this share of the budget: below is the
luck of the first seeds."""

WIDTH, HEIGHT = 860, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 12, 14, 34


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """An axis mark, in pixels along its axis."""

    at: float
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A strategy's curve as SVG paths."""

    name: str
    colour: str
    mean_path: str
    band_path: str
    """Closed: the 95 % interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvesChart:
    """Everything the template needs to draw."""

    lines: tuple[Line, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    target_y: float
    """Height of the target."""
    left: float = _LEFT
    right: float = WIDTH - _RIGHT
    bottom: float = HEIGHT - _BOTTOM
    width: int = WIDTH
    height: int = HEIGHT


def curves_chart(landscape: LandscapeResult, target: float) -> CurvesChart:
    """Return the chart of a landscape's curves."""
    floor = speed_floor(landscape)
    count = landscape.evaluations

    def x_of(evaluation: int) -> float:
        return _LEFT + (evaluation - 1) / max(count - 1, 1) * (WIDTH - _LEFT - _RIGHT)

    def y_of(speed: float) -> float:
        share = (max(speed, floor) - floor) / (1 - floor)
        return HEIGHT - _BOTTOM - share * (HEIGHT - _TOP - _BOTTOM)

    def points(speeds: Sequence[float]) -> list[str]:
        return [f"{x_of(n):.1f},{y_of(s):.1f}" for n, s in enumerate(speeds, start=1)]

    lines = tuple(
        Line(
            name=result.strategy,
            colour=colour_of(number),
            mean_path="M" + "L".join(points(result.curve.mean)),
            band_path="M"
            + "L".join([*points(result.curve.low), *reversed(points(result.curve.high))])
            + "Z",
        )
        for number, result in enumerate(landscape.strategies)
    )
    return CurvesChart(
        lines=lines,
        x_ticks=tuple(Tick(at=x_of(n), label=str(n)) for n in _evaluation_ticks(count)),
        y_ticks=tuple(Tick(at=y_of(s), label=f"{100 * s:.0f} %") for s in _speed_ticks(floor)),
        target_y=y_of(target),
    )


def colour_of(number: int) -> str:
    """Return the colour of the strategy at this position."""
    return COLOURS[number % len(COLOURS)]


def speed_floor(landscape: LandscapeResult) -> float:
    """Return where the speed axis starts: a multiple of a tenth, at most 0.9."""
    early = min(max(int(EARLY_SHARE * landscape.evaluations), 1), landscape.evaluations) - 1
    lowest = min(result.curve.low[early] for result in landscape.strategies)
    return max(min(math.floor(10 * lowest) / 10, 0.9), 0.0)


def _evaluation_ticks(count: int) -> list[int]:
    """The first evaluation and at most ten round numbers up to the last."""
    step = next((s for s in (1, 2, 5, 10, 20, 25, 50, 100, 200, 500) if count <= 10 * s), 1000)
    return sorted({1, *range(step, count + 1, step)})


def _speed_ticks(floor: float) -> list[float]:
    step = 0.02 if floor >= 0.85 else 0.05 if floor >= 0.65 else 0.1 if floor >= 0.3 else 0.2
    return [floor + n * step for n in range(round((1 - floor) / step) + 1)]
