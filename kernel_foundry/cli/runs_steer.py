"""`kfoundry runs steer`: steering actions on an active run."""

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import click

from kernel_foundry.cli.console import PrintableConsole
from kernel_foundry.cli.name import as_called
from kernel_foundry.cli.options import json_option, open_foundry, target_options
from kernel_foundry.cli.output import print_json, print_text
from kernel_foundry.domain.archive import Run, RunState
from kernel_foundry.domain.candidate import LONGEST_CANDIDATE
from kernel_foundry.domain.steering import Steering, SteeringAction, SteeringEvent
from kernel_foundry.printable import one_line
from kernel_foundry.sdk.steering import (
    steering_events,
    steering_object,
    steering_of,
    steering_text,
)
from kernel_foundry.text_file import read_text_file

_NEEDED: Final = {
    SteeringAction.PIN: "CELL",
    SteeringAction.BAN: "CELL or a TRICK",
    SteeringAction.INJECT: "FILE",
}


@click.command("steer")
@click.argument("run")
@click.argument(
    "action", type=click.Choice([action.value for action in SteeringAction]), required=False
)
@click.argument("what", default="")
@json_option
@target_options
def steer_command(run: str, action: str | None, what: str, as_json: bool, **targets: Any) -> int:
    """Steer a run, or list the steering actions so far.

    An action takes effect with the next proposal, and survives a kill and --resume. A cell is
    MEMORY,ALGORITHM,SYNCHRONIZATION, the coordinates of the archive map, 0 to 3 each.

    \b
    pause           start nothing new; the clock of --minutes stops
    resume          continue after a pause or a stop
    stop            end the search; the winner is still measured again
    hint TEXT       show models this text in the next prompts; "" removes it
    pin CELL        aim at this cell, and start from its elite
    ban CELL        neither aim at this cell nor start from it
    ban TRICK       propose nothing whose code has these words
    release [...]   remove the pin or ban of a cell or a trick; without one, all
    inject FILE     judge this candidate, which may then become a parent

    A trick is a technique, by a name that code or lessons use, such as atomicAdd; "lesson NUMBER"
    is the advice of that lesson of `experience list`.

    \b
    kfoundry runs steer softmax-1 hint "keep the row in registers"
    kfoundry runs steer softmax-1 ban "sub_group_barrier"
    kfoundry runs steer softmax-1 inject mine.md
    kfoundry runs steer softmax-1                lists the actions so far
    """  # noqa: D301  a backspace keeps click from joining the lines
    asked = _asked(SteeringAction(action), what) if action else None
    with open_foundry(**targets) as foundry:
        found = foundry.ask_archive(lambda a: a.get_run(run))
        name = found.spec.name
        if asked is not None:
            asked = foundry.steer(run, asked).steering
        events = foundry.ask_archive(lambda a: steering_events(a, name))
    if as_json:
        print_json({"run": name, **steering_object(events)})
    elif asked is None:
        show_steering(PrintableConsole(), events)
    else:
        print_text(f"{name}: {one_line(steering_text(asked))}; {_when(found)}", err=True)
    return 0


def show_steering(console: PrintableConsole, events: Iterable[SteeringEvent]) -> None:
    """Print the steering actions of a run, one a line."""
    for event in events:
        at = time.strftime("%Y-%m-%d %H:%M", time.localtime(event.steered_unix_s))
        line = f"steered {at}, after evaluation {event.evaluation_count}: "
        text = one_line(line + steering_text(event.steering))
        console.print(text, highlight=False, soft_wrap=True)


def _asked(action: SteeringAction, what: str) -> Steering:
    needed = _NEEDED.get(action)
    if needed and not what.strip():
        raise click.UsageError(f"{action.value} needs a {needed}")
    match action:
        case SteeringAction.HINT:
            return steering_of(action, text=what)
        case SteeringAction.PIN:
            return steering_of(action, cell=what)
        case SteeringAction.BAN | SteeringAction.RELEASE:
            is_trick = any(character.isalpha() for character in what)
            return steering_of(action, **{"text" if is_trick else "cell": what})
        case SteeringAction.INJECT:
            return steering_of(action, candidate=read_text_file(Path(what), LONGEST_CANDIDATE))
    if what:
        raise click.UsageError(f"{action.value} takes no argument: leave {what!r} out")
    return steering_of(action)


def _when(run: Run) -> str:
    if run.state is RunState.RUNNING:
        return "takes effect with the next proposal"
    resume = as_called(f"optimize --resume --run {run.spec.name}")
    return f"the run is not active: takes effect after `{resume}`"
