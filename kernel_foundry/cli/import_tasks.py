"""`kfoundry import`: turn tasks of other projects into task files."""

from pathlib import Path

import click

from kernel_foundry.cli.console import PrintableConsole
from kernel_foundry.cli.options import json_option
from kernel_foundry.cli.output import print_json, print_text
from kernel_foundry.cli.table import numbers, plain_table, whole
from kernel_foundry.domain.plain import to_plain
from kernel_foundry.printable import one_line
from kernel_foundry.sdk.task_import.formats import FORMATS
from kernel_foundry.sdk.task_import.writing import ImportedSuite, import_suite


@click.command()
@click.argument("path", type=click.Path(path_type=Path))
@click.option(
    "--format",
    "format_name",
    type=click.Choice(["auto", *FORMATS]),
    default="auto",
    show_default=True,
    help="Format of the files; auto detects it.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("tasks"),
    show_default=True,
    help="Folder for the task files; files there that differ are not replaced.",
)
@json_option
def command(path: Path, format_name: str, out: Path, as_json: bool) -> int:
    """Write a task file, with its sidecar, for each task of another project in PATH.

    PATH is a file or a folder. It is read and never executed: the code of its tasks runs only when
    `admit` or another command judges them. Exit code 1 if some tasks could not be imported; a line
    for each says why.

    \b
    kfoundry import KernelBench/level1 --out tasks
    kfoundry admit tasks/19_ReLU.py
    """  # noqa: D301  a backspace keeps click from joining the lines
    suite = import_suite(path, out, format_name=format_name)
    if as_json:
        print_json({"out": str(out), **to_plain(suite)})
    else:
        _show(suite, out)
    return 1 if suite.left_out else 0


def _show(suite: ImportedSuite, out: Path) -> None:
    reasons = "not kept, or why not imported"
    table = plain_table("entry", whole("task"), *numbers("workloads"), reasons)
    for task in suite.imported:
        notes = "; ".join(task.notes)
        table.add_row(one_line(task.source), task.task, str(task.workloads), one_line(notes))
    for entry in suite.left_out:
        table.add_row(one_line(entry.source), "-", "", one_line(entry.reason), style="red")
    PrintableConsole().print(table)
    print_text(
        f"{suite.format}: {len(suite.imported)} imported into {out},"
        f" {len(suite.left_out)} not imported"
    )
