"""`kfoundry submit`: run a command in the background, independent of this terminal."""

from typing import Final

import click

from kernel_foundry.cli.main import cli
from kernel_foundry.cli.name import as_called
from kernel_foundry.cli.output import print_text
from kernel_foundry.paths import jobs_dir
from kernel_foundry.sdk.jobs.job import JobFolder
from kernel_foundry.sdk.jobs.submit import submit

_LONG: Final = ("bench", "capture", "evaluate", "optimize", "suite", "sweep")
"""Commands that take their time."""


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option(
    "--priority",
    type=click.IntRange(0, 9),
    default=0,
    help="Priority among waiting jobs; 9 is the highest.",
)
@click.argument("name", metavar="COMMAND", type=click.Choice(_LONG))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(priority: int, name: str, arguments: tuple[str, ...]) -> int:
    """Start COMMAND with its arguments, print its job's id, and return at once.

    It runs on this machine, with the present environment, even after this terminal is closed.
    `kfoundry jobs` lists, watches, cancels and deletes jobs. With KERNEL_FOUNDRY_JOBS_AT_ONCE=N at
    most N run at once, and the others wait for their turn.

    \b
    kfoundry submit optimize my_op.py --minutes 60 --evaluator fleet.yaml
    kfoundry submit suite run tasks --evaluations 40
    """  # noqa: D301  a backspace keeps click from joining the lines
    _check(name, arguments)
    job = submit(JobFolder(jobs_dir()), (name, *arguments), priority=priority)
    print_text(job.id)
    print_text(f"to follow it: {as_called(f'jobs watch {job.id}')}", err=True)
    return 0


def _check(name: str, arguments: tuple[str, ...]) -> None:
    """Refuse now what the command itself would refuse as soon as it is read.

    Raises:
        click.ClickException: as the command does.
    """
    context = click.Context(cli)
    found = cli.get_command(context, name)
    assert found is not None  # of `_LONG`
    with found.make_context(name, list(arguments), parent=context):
        pass
