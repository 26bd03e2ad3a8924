"""`kfoundry suite`: optimise many tasks as one job, and report the results."""

import click

from kernel_foundry.cli.suite_compare import compare_command
from kernel_foundry.cli.suite_delete import delete_command
from kernel_foundry.cli.suite_export import export_command
from kernel_foundry.cli.suite_judge import judge_command
from kernel_foundry.cli.suite_list import list_command
from kernel_foundry.cli.suite_matrix import matrix_command
from kernel_foundry.cli.suite_run import run_command
from kernel_foundry.cli.suite_show import report_command, show_command


@click.group()
def command() -> None:
    """Optimise many tasks as one job, and report the results. NAME defaults to the newest suite.

    \b
    Start here:
      kfoundry import KernelBench/KernelBench/level1 --out level1
      kfoundry suite run level1 --name level1 --evaluations 40 --estimate
      kfoundry suite run level1 --name level1 --evaluations 40
      kfoundry suite run --resume                     after Ctrl-C, a kill or a new budget
      kfoundry suite show                             fast_p, means, each run
      kfoundry suite compare level1 level1-b          what changed, and whether it is noise

    Each task is a run like that of `kfoundry optimize`, called NAME.TASK: `kfoundry runs` shows it.
    """  # noqa: D301  a backspace keeps click from joining the lines


command.add_command(run_command)
command.add_command(judge_command)
command.add_command(list_command)
command.add_command(show_command)
command.add_command(report_command)
command.add_command(export_command)
command.add_command(compare_command)
command.add_command(matrix_command)
command.add_command(delete_command)
