"""Writes the report of a run, the page of `kfoundry ui` as one file, and its winner's record."""

from pathlib import Path

from kernel_foundry.evidence.record import record_of, write_record
from kernel_foundry.paths import report_path
from kernel_foundry.sdk.client import Foundry
from kernel_foundry.sdk.loop.progress import RunResult
from kernel_foundry.sdk.report.run_data import run_data, winners_exchanges
from kernel_foundry.sdk.report.single_file import write_single_file
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
    target = path or report_path(run)
    write_single_file(target, data, title=found.spec.name, summary=summary)
    return target


def write_record_beside(report: Path, ended: RunResult) -> Path | None:
    """Write the winner's evidence record beside a run's report; None where nobody signed for it."""
    winner = ended.winner
    if winner is None or winner.evaluation.attestation is None:
        return None
    path = report.with_suffix(".record.json")
    write_record(record_of(ended.run.spec.task, winner.candidate.source, winner.evaluation), path)
    return path
