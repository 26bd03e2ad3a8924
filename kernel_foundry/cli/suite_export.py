"""`kfoundry suite export`: the results of a suite as files, with evidence records."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from kernel_foundry.cli.options import target_options
from kernel_foundry.cli.output import print_text
from kernel_foundry.cli.suite_show import open_suite
from kernel_foundry.domain.plain import to_json
from kernel_foundry.evidence.record import record_of, write_record
from kernel_foundry.quantity_text import counted
from kernel_foundry.sdk.suite.kernelbench_files import (
    baseline_names,
    baseline_times,
    eval_results,
    level_of,
)
from kernel_foundry.sdk.suite.results import EntryResult
from kernel_foundry.sdk.suite.suite import Suite
from kernel_foundry.sdk.suite.tables import csv_text, suite_object
from kernel_foundry.whole_file import writing


@click.command("export")
@click.argument("name", default="")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder to write into.  [default: the suite's name]",
)
@target_options
def export_command(name: str, out: Path | None, **targets: Any) -> int:
    """Write a suite's results as files: results.csv, results.json, records and KernelBench's own.

    eval_results.json and baseline_time_KIND.json are what KernelBench's analysis reads; of a suite
    with several of its levels there is one eval_results file for each. records/TASK.json is the
    evidence record of a task's winner, as `kfoundry runs record` writes it: `kfoundry verify`
    judges the kernel again. `kfoundry export` writes the kernels themselves.

    \b
    kfoundry suite export monday --out results
    """  # noqa: D301  a backspace keeps click from joining the lines
    suite, results = open_suite(name, **targets)
    folder = out or Path(suite.plan.name)
    write_results(folder, results, suite_object(suite, results))
    _write_records(folder / "records", suite, results)
    return 0


def _write_records(folder: Path, suite: Suite, results: Sequence[EntryResult]) -> None:
    winners = [(result.entry, result.winner) for result in results if result.winner is not None]
    signed = [(e, winner) for e, winner in winners if winner.evaluation.attestation is not None]
    for entry, winner in signed:
        name = entry.run.removeprefix(f"{suite.plan.name}.")
        record = record_of(entry.task, winner.candidate.source, winner.evaluation)
        write_record(record, folder / f"{name}.json")
    if signed:
        print_text(f"{folder}: {counted(len(signed), 'record')}")
    if len(winners) > len(signed):
        without = counted(len(winners) - len(signed), "winner")
        print_text(f"{without} without a record: nobody signed the verdict", err=True)


def write_results(folder: Path, results: Sequence[EntryResult], found: dict[str, Any]) -> None:
    """Write results as files, and print the paths of these.

    Args:
        folder: Where.
        results: Of all tasks.
        found: The same as the object of results.json.

    Raises:
        InvalidArgumentError: the folder cannot be written.
    """
    files = {"results.csv": csv_text(results), "results.json": to_json(found) + "\n"}
    levels = dict.fromkeys(level_of(result.entry.task.name) for result in results)
    for level in levels:
        of_level = [r for r in results if level_of(r.entry.task.name) == level]
        suffix = f"_level{level}" if level and len(levels) > 1 else ""
        files[f"eval_results{suffix}.json"] = to_json(eval_results(of_level)) + "\n"
    for baseline in baseline_names(results):
        kind = baseline.replace(".", "_")
        files[f"baseline_time_{kind}.json"] = to_json(baseline_times(results, baseline)) + "\n"
    with writing(folder, field="out"):
        folder.mkdir(parents=True, exist_ok=True)
        for file_name, text in files.items():
            (folder / file_name).write_text(text, encoding="utf-8")
    for file_name in files:
        print_text(folder / file_name)
