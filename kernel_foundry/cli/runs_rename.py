"""`kfoundry runs rename`: rename a run with its files."""

from contextlib import closing
from typing import Any

import click

from kernel_foundry.cli.options import open_foundry, target_options
from kernel_foundry.cli.output import print_text
from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.paths import suites_path
from kernel_foundry.sdk.suite.store.store import SuiteStore


@click.command("rename")
@click.argument("run")
@click.argument("name")
@target_options
def rename_command(run: str, name: str, **targets: Any) -> int:
    """Rename RUN to NAME, with its exchanges, landscapes, report and record.

    Refused while the run is active, and for runs of a suite, which finds its runs by name.

    \b
    kfoundry runs rename softmax-20260131-140502 softmax-best
    """  # noqa: D301  a backspace keeps click from joining the lines
    with open_foundry(**targets) as foundry:
        _check_suites(run)
        foundry.rename(run, name)
    print_text(f"{run} is called {name} now", err=True)
    return 0


def _check_suites(run: str) -> None:
    if not suites_path().exists():
        return
    with closing(SuiteStore(suites_path())) as store:
        for suite in store.names():
            if run in {entry.run for entry in store.find(suite).entries}:
                raise InvalidArgumentError(
                    f"run {run} is of suite {suite}, which finds its runs by name", field="run"
                )
