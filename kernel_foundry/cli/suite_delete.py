"""`kfoundry suite delete`: delete suites permanently."""

import shutil
from contextlib import closing
from typing import Any

import click

from kernel_foundry.cli.options import open_foundry, target_options
from kernel_foundry.cli.output import print_text
from kernel_foundry.paths import matrix_dir, suite_report_path, suites_path
from kernel_foundry.process_identity import new_holder
from kernel_foundry.sdk.client import Foundry
from kernel_foundry.sdk.suite.entry import EntryState
from kernel_foundry.sdk.suite.store.store import SuiteStore
from kernel_foundry.sdk.suite.suite import Suite


@click.command("delete")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--keep-runs", is_flag=True, help="Leave the runs themselves in the archive.")
@target_options
def delete_command(names: tuple[str, ...], keep_runs: bool, **targets: Any) -> int:
    """Delete suites permanently, with all of their runs.

    Lessons and guidance learnt from them stay. An active suite is refused. `kfoundry clean` frees
    the disk space.

    \b
    kfoundry suite delete monday tuesday
    """  # noqa: D301  a backspace keeps click from joining the lines
    with closing(SuiteStore(suites_path())) as store, open_foundry(**targets) as foundry:
        for name in names:
            suite = store.find(name)
            store.hold(suite, new_holder())
            if not keep_runs:
                _delete_runs(foundry, suite)
            store.delete(suite)
            print_text(f"{name} is deleted", err=True)
    return 0


def _delete_runs(foundry: Foundry, suite: Suite) -> None:
    for entry in suite.entries:
        if entry.state is not EntryState.WAITING and foundry.exists(entry.run):
            foundry.delete(entry.run)
    suite_report_path(suite.plan.name).unlink(missing_ok=True)
    shutil.rmtree(matrix_dir(suite.plan.name), ignore_errors=True)
