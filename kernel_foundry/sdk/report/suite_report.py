"""Writes the results of a suite, or of published kernels, as one HTML file."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.quantity_text import counted
from kernel_foundry.sdk.report.environment import report_environment
from kernel_foundry.sdk.statistics.estimate_text import number_text, ratio_text, share_text
from kernel_foundry.sdk.suite.numbers.distribution import SpeedupCount, speedup_counts
from kernel_foundry.sdk.suite.results import FASTEST, EntryResult
from kernel_foundry.sdk.suite.suite import Suite
from kernel_foundry.sdk.suite.summary import summary_of


def write_suite_report(suite: Suite, results: Sequence[EntryResult], path: Path) -> None:
    """Write one self-contained HTML file.

    Raises:
        InvalidArgumentError: it cannot be written there.
    """
    plan = suite.plan
    models = ", ".join(plan.models) or "default model"
    begun = datetime.fromtimestamp(suite.created_unix_s, tz=UTC)
    heading = (
        f"{plan.language.value} on {', '.join(plan.devices)} · {models} · strategy {plan.strategy}"
        f" · {counted(len(plan.tasks), 'task')}, {counted(plan.repeats, 'run')} each"
        f" · {begun:%Y-%m-%d %H:%M} UTC"
    )
    write_results_report(
        results, path, title=plan.name, heading=heading, seconds=suite.used_seconds
    )


def write_results_report(
    results: Sequence[EntryResult], path: Path, *, title: str, heading: str, seconds: float
) -> None:
    """Write results as one self-contained HTML file.

    Args:
        results: Of all tasks.
        path: The file.
        title: Of the page.
        heading: What was run, in one line.
        seconds: What it took.

    Raises:
        InvalidArgumentError: it cannot be written there.
    """
    environment = report_environment()
    environment.filters |= {"share": share_text, "ratio": ratio_text, "number": number_text}
    html = environment.get_template("suite.html.j2").render(
        title=title,
        heading=heading,
        seconds=seconds,
        results=results,
        summary=summary_of(results),
        distribution=_distribution(results),
        fastest=FASTEST,
    )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(html, encoding="utf-8")
    except OSError as error:
        raise InvalidArgumentError(
            f"the report {path} cannot be written: {error.strerror}", field="path"
        ) from error


def _distribution(results: Sequence[EntryResult]) -> tuple[SpeedupCount, ...]:
    """Of runs that have ended, on tasks that no trivial answer passes."""
    counted = [r for r in results if r.entry.has_ended and not r.is_degenerate]
    found = [result.speedup(FASTEST) for result in counted]
    return speedup_counts([None if one is None else one.value for one in found])
