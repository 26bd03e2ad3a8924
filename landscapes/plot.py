"""Plots the curves of compared strategies as PNG, where matplotlib is installed.

matplotlib is imported only here and only when a plot is asked for.
"""

import importlib.util
import math
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kernel_foundry.errors import PackageMissingError
from landscapes.curves import colour_of, speed_floor
from landscapes.strategy_results import LandscapeResult, SearchComparison

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PANEL_INCHES: Final = (6.0, 3.6)
_DOTS_PER_INCH: Final = 130


def check_plots() -> None:
    """Raise PackageMissingError when matplotlib is not installed."""
    if importlib.util.find_spec("matplotlib") is None:
        raise PackageMissingError(
            "plots need matplotlib: pip install 'kernel-foundry[plots]'; --report draws the same "
            "curves without it",
            package="matplotlib",
        )


def write_comparison_plot(comparison: SearchComparison, path: Path) -> None:
    """Write a PNG with one panel a landscape.

    Raises:
        PackageMissingError: matplotlib is not installed.
    """
    check_plots()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    count = len(comparison.landscapes)
    columns = min(count, math.ceil(math.sqrt(count)))
    rows = math.ceil(count / columns)
    width, height = _PANEL_INCHES
    figure = Figure(figsize=(width * columns, height * rows + 0.4), layout="constrained")
    FigureCanvasAgg(figure)  # no window, no display
    panels = list(figure.subplots(rows, columns, squeeze=False).flat)
    for panel, landscape in zip(panels, comparison.landscapes, strict=False):
        _draw(panel, landscape, comparison.target)
    for panel in panels[count:]:
        panel.set_axis_off()
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, format="png", dpi=_DOTS_PER_INCH)


def _draw(panel: "Axes", landscape: LandscapeResult, target: float) -> None:
    evaluations = range(1, landscape.evaluations + 1)
    for number, result in enumerate(landscape.strategies):
        colour, curve = colour_of(number), result.curve
        panel.fill_between(evaluations, curve.low, curve.high, color=colour, alpha=0.15, lw=0)
        panel.plot(evaluations, curve.mean, color=colour, lw=1.6, label=result.strategy)
    panel.axhline(target, color="0.5", ls="--", lw=0.8)
    panel.set_ylim(speed_floor(landscape), 1.005)
    panel.set_xlim(1, max(landscape.evaluations, 2))
    panel.set_title(f"{landscape.name} ({landscape.variant_count} variants)", fontsize=10)
    panel.set_xlabel("evaluations")
    panel.set_ylabel("best speed so far / best variant's")
    panel.grid(color="0.92")
