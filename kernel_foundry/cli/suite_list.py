"""`kfoundry suite list`: the suites of this machine and the progress of each."""

import time
from contextlib import closing

import click

from kernel_foundry.cli.console import PrintableConsole
from kernel_foundry.cli.name import as_called
from kernel_foundry.cli.options import json_option
from kernel_foundry.cli.output import print_json
from kernel_foundry.cli.table import numbers, plain_table, whole
from kernel_foundry.paths import suites_path
from kernel_foundry.sdk.suite.entry import EntryState
from kernel_foundry.sdk.suite.store.store import SuiteStore
from kernel_foundry.sdk.suite.tables import listed_suite_object


@click.command("list")
@json_option
def list_command(as_json: bool) -> int:
    """List all suites, newest first.

    \b
    kfoundry suite list
    """  # noqa: D301  a backspace keeps click from joining the lines
    with closing(SuiteStore(suites_path())) as store:
        suites = [store.find(name) for name in store.names()]
    if as_json:
        print_json([listed_suite_object(suite) for suite in suites])
        return 0
    figures = numbers("tasks", "ended", "refused or failed", "USD")
    table = plain_table(whole("suite"), *figures, "created")
    for suite in suites:
        created = time.strftime("%Y-%m-%d %H:%M", time.localtime(suite.created_unix_s))
        ended = sum(entry.has_ended for entry in suite.entries)
        table.add_row(
            suite.plan.name,
            str(len(suite.plan.tasks)),
            f"{ended} of {len(suite.entries)}",
            str(suite.count(EntryState.REFUSED) + suite.count(EntryState.FAILED)),
            f"{suite.cost_usd:.2f}",
            created,
        )
    makes_one = f"no suites yet: `{as_called('suite run FOLDER')}` makes one"
    PrintableConsole().print(table if suites else makes_one)
    return 0
