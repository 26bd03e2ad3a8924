"""Compared strategies as tables for a terminal."""

from rich.box import SIMPLE_HEAD
from rich.table import Column, Table

from landscapes.strategy_results import LandscapeResult, OverallDifference
from landscapes.texts import difference_text, estimate_text, ratio_text, verdict_text


def landscape_table(landscape: LandscapeResult, percent: str) -> Table:
    """Return what each strategy came to on a landscape; `percent`: the target, as text."""
    differences = {d.other: d for d in landscape.differences}
    subject = landscape.differences[0].strategy if differences else ""
    table = Table(
        Column("strategy", no_wrap=True),
        Column("evaluations", justify="right"),
        Column("median", justify="right"),
        Column("reached", justify="right"),
        Column(f"{subject} − it" if subject else "", justify="right"),
        Column("final", justify="right"),
        Column("cells", justify="right"),
        Column("QD", justify="right"),
        box=SIMPLE_HEAD,
        title=f"{landscape.name}: {landscape.variant_count} variants, "
        f"{landscape.target_count} of them at {percent} of the best "
        f"(drawing blindly: {landscape.drawing_evaluations:.1f} evaluations); "
        f"budget {landscape.evaluations}",
        title_justify="left",
    )
    for result in landscape.strategies:
        difference = differences.get(result.strategy)
        table.add_row(
            result.strategy,
            estimate_text(result.evaluations_mean),
            f"{result.evaluations_median.value:.0f}",
            f"{result.reached_share.value:.0%}",
            difference_text(difference) if difference else "",
            f"{result.final_speed.value:.1%}",
            f"{result.coverage.value:.0%}",
            f"{result.qd_score.value:.2f}",
        )
    return table


def overall_table(overall: tuple[OverallDifference, ...], landscape_count: int) -> Table:
    """Return how the first strategy does against each other one over all landscapes."""
    table = Table(
        f"{overall[0].strategy} against",
        "ratio of evaluations",
        "fewer on",
        "more on",
        "verdict",
        box=SIMPLE_HEAD,
        title=f"Over {landscape_count} landscape{'s' if landscape_count > 1 else ''}",
        title_justify="left",
    )
    for difference in overall:
        table.add_row(
            difference.other,
            ratio_text(difference.evaluations_ratio),
            str(difference.fewer_count),
            str(difference.more_count),
            verdict_text(difference),
        )
    return table
