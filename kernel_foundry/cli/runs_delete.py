"""`kfoundry runs delete`: delete runs permanently."""

from typing import Any

import click

from kernel_foundry.cli.options import open_foundry, target_options
from kernel_foundry.cli.output import print_text


@click.command("delete")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@target_options
def delete_command(runs: tuple[str, ...], **targets: Any) -> int:
    """Delete runs permanently: their evaluations, exchanges, landscapes, report and record.

    Lessons and guidance learnt from them stay. An active run is refused. `kfoundry clean` frees the
    disk space.

    \b
    kfoundry runs delete softmax-1 softmax-2
    """  # noqa: D301  a backspace keeps click from joining the lines
    with open_foundry(**targets) as foundry:
        for run in runs:
            foundry.delete(run)
            print_text(f"{run} is deleted", err=True)
    return 0
