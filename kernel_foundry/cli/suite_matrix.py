"""`kfoundry suite matrix`: the same tasks in several suites side by side."""

from typing import Any

import click

from kernel_foundry.cli.console import PrintableConsole
from kernel_foundry.cli.options import json_option, target_options
from kernel_foundry.cli.output import print_json
from kernel_foundry.cli.suite_show import open_results
from kernel_foundry.cli.table import numbers, plain_table, whole
from kernel_foundry.domain.plain import to_plain
from kernel_foundry.printable import one_line
from kernel_foundry.sdk.statistics.estimate_text import ratio_text, share_text
from kernel_foundry.sdk.suite.matrix import SuiteMatrix, matrix_of


@click.command("matrix")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@json_option
@target_options
def matrix_command(names: tuple[str, ...], as_json: bool, **targets: Any) -> int:
    """Show the tasks of several suites side by side: devices, models or settings in one table.

    Each figure is the speed-up over the fastest baseline on the suite's own device, with its
    interval. Tasks that a trivial answer passes, or that have not ended, are left out of a suite.

    \b
    kfoundry suite matrix level1-h100 level1-cpu
    """  # noqa: D301  a backspace keeps click from joining the lines
    found = matrix_of([(suite.plan, results) for suite, results in open_results(names, **targets)])
    if as_json:
        print_json(to_plain(found))
    else:
        _show(found)
    return 0


def _show(found: SuiteMatrix) -> None:
    suites = (f"{one.suite} ({', '.join(one.devices)})" for one in found.suites)
    table = plain_table(whole("task"), *numbers(*suites))
    for task in found.tasks:
        cells = ["" if not cell.counts else ratio_text(cell.speedup) for cell in task.cells]
        table.add_row(one_line(task.task), *cells)
    table.add_section()
    table.add_row("geometric mean", *(ratio_text(one.geometric_mean) for one in found.suites))
    table.add_row("fast_1", *(share_text(one.fast_1) for one in found.suites))
    table.add_row("solved", *(share_text(one.correctness) for one in found.suites))
    PrintableConsole().print(table)
