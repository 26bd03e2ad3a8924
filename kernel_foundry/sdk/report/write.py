"""Writes the report of a run: the page of `kfoundry ui` as one file, with the run inside."""

from html import escape
from pathlib import Path

from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.paths import report_path
from kernel_foundry.printable import printable
from kernel_foundry.sdk.client import Foundry
from kernel_foundry.sdk.report.run_data import run_data, winners_exchanges
from kernel_foundry.sdk.report.single_file import single_file
from kernel_foundry.sdk.run_account import ask_account
from kernel_foundry.sdk.verdict_text import headline_text


def write_report(foundry: Foundry, run: str, path: Path | None = None) -> Path:
    """Write the HTML report of `run` and return its path (default: the reports folder).

    Raises:
        InvalidArgumentError: it cannot be written there.
    """
    answer = ask_account(foundry, run)
    data = foundry.ask_archive(lambda a: run_data(a, run, answer))
    if answer.account is not None:
        data["exchanges"] = foundry.ask_generator(lambda g: winners_exchanges(g, data))
    head = data["run"]
    found = foundry.ask_archive(lambda a: a.get_run(run))
    gain = headline_text(found.best_speedup, found.best_speedup_interval)
    summary = f"{head['run']}, {head['task']}: {gain}."
    html = single_file(data, title=found.spec.name, summary=escape(printable(summary)))
    target = path or report_path(run)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(html, encoding="utf-8")
    except OSError as error:
        raise InvalidArgumentError(
            f"the report {target} cannot be written: {error.strerror}", field="path"
        ) from error
    return target
