"""Writes the report of compared strategies. Knows nothing of how searches were made."""

from pathlib import Path

from kernel_foundry.sdk.report.comparison_text import (
    difference_text,
    estimate_text,
    ratio_text,
    share_text,
    verdict_text,
)
from kernel_foundry.sdk.report.curves_chart import colour_of, curves_chart
from kernel_foundry.sdk.report.environment import report_environment
from kernel_foundry.search_comparison import SearchComparison


def write_comparison_report(comparison: SearchComparison, path: Path) -> None:
    """Write one self-contained HTML file."""
    environment = report_environment()
    environment.filters |= {
        "estimate": estimate_text,
        "share": share_text,
        "difference": difference_text,
        "ratio": ratio_text,
        "verdict": verdict_text,
    }
    html = environment.get_template("comparison.html.j2").render(
        comparison=comparison,
        charts=[curves_chart(r, comparison.target) for r in comparison.landscapes],
        colour_of=colour_of,
        target=f"{100 * comparison.target:.0f} %",
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(html, encoding="utf-8")
