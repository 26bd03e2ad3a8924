"""Writes the report of a suite as one HTML file."""

from collections.abc import Sequence
from pathlib import Path

from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.sdk.report.environment import report_environment
from kernel_foundry.sdk.suite.estimate_text import number_text, ratio_text, share_text
from kernel_foundry.sdk.suite.results import FASTEST, EntryResult
from kernel_foundry.sdk.suite.suite import Suite
from kernel_foundry.sdk.suite.summary import summary_of


def write_suite_report(suite: Suite, results: Sequence[EntryResult], path: Path) -> None:
    """Write one self-contained HTML file.

    Raises:
        InvalidArgumentError: it cannot be written there.
    """
    environment = report_environment()
    environment.filters |= {"share": share_text, "ratio": ratio_text, "number": number_text}
    html = environment.get_template("suite.html.j2").render(
        suite=suite, plan=suite.plan, results=results, summary=summary_of(results), fastest=FASTEST
    )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(html, encoding="utf-8")
    except OSError as error:
        raise InvalidArgumentError(
            f"the report {path} cannot be written: {error.strerror}", field="path"
        ) from error
