"""`kfoundry runs watch`: show a run's evaluations as they are archived."""

from contextlib import aclosing
from typing import Any

import click

from kernel_foundry.cli.name import as_called
from kernel_foundry.cli.options import open_foundry, target_options
from kernel_foundry.cli.output import print_json, print_text
from kernel_foundry.domain.archive import RunEvent
from kernel_foundry.errors import KernelFoundryError
from kernel_foundry.ports import Archive
from kernel_foundry.printable import one_line
from kernel_foundry.sdk.run_objects import event_object
from kernel_foundry.sdk.verdict_text import verdict_text


@click.command()
@click.argument("run", default="")
@click.option(
    "--after",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Start after this sequence number; 0 also shows all evaluations so far.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object a line on stdout, nothing else."
)
@target_options
def watch(run: str, after: int, as_json: bool, **targets: Any) -> int:
    """Show a run's evaluations as they are archived, until the run ends.

    The search may run in any process on the same store. Each line begins with its sequence number;
    after an interruption, pass the last one to --after. With --json
    each event is one JSON object on a line of its own; the last one has the run's "state".

    \b
    kfoundry runs watch                              the newest run, from its start
    kfoundry runs watch softmax-1 --after 120        what comes after number 120
    kfoundry runs watch --archive gpuhost:50052 --json | jq .speedup
    """  # noqa: D301  a backspace keeps click from joining the lines
    last = after

    async def follow(archive: Archive) -> None:
        nonlocal last
        async with aclosing(archive.watch(run, after=after)) as events:
            async for event in events:
                _show(event, as_json=as_json)
                last = event.sequence

    with open_foundry(**targets) as foundry:
        try:
            foundry.ask_archive(follow)
        except (KernelFoundryError, KeyboardInterrupt):
            if last > after:
                print_text(f"continue: {as_called(f'runs watch {run} --after {last}')}", err=True)
            raise
    return 0


def _show(event: RunEvent, *, as_json: bool) -> None:
    if as_json:
        print_json(event_object(event))
    else:
        print_text(one_line(_line(event)))


def _line(event: RunEvent) -> str:
    if event.archived is None:
        return f"[{event.sequence}] the run is {event.state.value if event.state else 'over'}"
    archived = event.archived
    island = f" island {archived.island}" if archived.island else ""
    operator = archived.candidate.operator.value
    verdict = verdict_text(archived.candidate, archived.evaluation)
    return f"[{event.sequence}] {operator} {verdict}{island}"
