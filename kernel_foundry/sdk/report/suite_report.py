"""The results of a suite, or of foreign kernels, for `kfoundry ui` and as one HTML file."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kernel_foundry.domain.plain import to_plain
from kernel_foundry.quantity_text import counted
from kernel_foundry.sdk.report.single_file import write_single_file
from kernel_foundry.sdk.suite.numbers.distribution import SpeedupCount, speedup_counts
from kernel_foundry.sdk.suite.results import FASTEST, EntryResult
from kernel_foundry.sdk.suite.suite import Suite
from kernel_foundry.sdk.suite.summary import summary_of
from kernel_foundry.sdk.suite.tables import row_of


def suite_page(suite: Suite, results: Sequence[EntryResult]) -> dict[str, Any]:
    """Return what the page shows of a suite."""
    plan = suite.plan
    models = ", ".join(plan.models) or "default model"
    begun = datetime.fromtimestamp(suite.created_unix_s, tz=UTC)
    heading = (
        f"{plan.language.value} on {', '.join(plan.devices)} · {models} · strategy {plan.strategy}"
        f" · {counted(len(plan.tasks), 'task')}, {counted(plan.repeats, 'run')} each"
        f" · {begun:%Y-%m-%d %H:%M} UTC"
    )
    page = results_page(results, title=plan.name, heading=heading, seconds=suite.used_seconds)
    return {**page, "has_ended": suite.has_ended}


def results_page(
    results: Sequence[EntryResult], *, title: str, heading: str, seconds: float
) -> dict[str, Any]:
    """Return what the page shows of results that are final.

    Args:
        results: Of all tasks.
        title: Of the page.
        heading: What was run, in one line.
        seconds: What it took.
    """
    return {
        "suite": title,
        "heading": heading,
        "has_ended": True,
        "used_seconds": seconds,
        "summary": to_plain(summary_of(results)),
        "distribution": [to_plain(count) for count in _distribution(results)],
        "runs": [to_plain(row_of(result)) for result in results],
    }


def write_suite_report(page: Mapping[str, Any], path: Path) -> None:
    """Write a page as one self-contained HTML file.

    Raises:
        InvalidArgumentError: it cannot be written there.
    """
    summary = f"{page['suite']}: {page['heading']}."
    write_single_file(path, {"suite": page}, title=page["suite"], summary=summary)


def _distribution(results: Sequence[EntryResult]) -> tuple[SpeedupCount, ...]:
    """Of runs that have ended, on tasks that no trivial answer passes."""
    counted = [r for r in results if r.entry.has_ended and not r.is_degenerate]
    found = [result.speedup(FASTEST) for result in counted]
    return speedup_counts([None if one is None else one.value for one in found])
