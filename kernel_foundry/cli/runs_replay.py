"""`kfoundry runs replay`: repeat a run without models or devices, and compare the two."""

import click

from kernel_foundry.cli.options import generator_option, json_option, store_option
from kernel_foundry.cli.output import print_json, print_text
from kernel_foundry.domain.plain import to_plain
from kernel_foundry.quantity_text import counted
from kernel_foundry.sdk.client import connect
from kernel_foundry.sdk.replay.replay import ReplayOutcome, replay
from kernel_foundry.sdk.services import Targets

EXIT_DIFFERENT = 1

_SHOWN_CHARS = 400
"""Characters shown of each side of a difference; candidates are long."""


@click.command("replay")
@click.argument("run", default="")
@click.option(
    "--into",
    default="",
    metavar="URL",
    help="Store for the replayed run.  [default: a temporary one]",
)
@store_option
@generator_option
@json_option
def replay_command(run: str, into: str, store: str, generator: str, as_json: bool) -> int:
    """Repeat a run without models or devices, and check that the result is the same.

    The archive repeats its selections and additions in the recorded order, candidates are made from
    the recorded replies of the models, and the verdicts are the recorded ones. Then both runs are
    compared: their export files byte for byte, their elites, statistics, gradient field and spend.
    The first difference is shown, with exit code 1. This needs direct access to the store, and the
    generator that has the run's exchanges.

    \b
    kfoundry runs replay                             the newest run
    kfoundry runs replay softmax-1 --into sqlite:///again.db
    """  # noqa: D301  a backspace keeps click from joining the lines
    with connect(Targets(generator=generator, store=store)) as foundry:
        outcome = foundry.ask_generator(lambda g: replay(store, run, g, into=into))
    if as_json:
        print_json(to_plain(outcome) | {"is_equal": outcome.difference is None})
    else:
        _show(outcome)
    return 0 if outcome.difference is None else EXIT_DIFFERENT


def _show(outcome: ReplayOutcome) -> None:
    difference, replayed = outcome.difference, outcome.replayed
    if difference is not None or replayed is None:
        assert difference is not None  # the one without the other does not occur
        print_text(f"{outcome.run} differs when replayed, at {difference.where}: {difference.what}")
        print_text(f"  recorded: {_clip(difference.recorded)}")
        print_text(f"  replayed: {_clip(difference.replayed)}")
        return
    counts = [
        (replayed.remade, "candidate", " made from recorded replies"),
        (replayed.judged_again, "further verdict", " on the same candidates"),
        (replayed.by_hand, "candidate", " added by hand"),
        (replayed.unselected, "candidate", " with a selection that was lost in a restart"),
        (replayed.restarts, "restart", ""),
    ]
    print_text(
        f"{outcome.run} is equal when replayed: {counted(replayed.evaluations, 'evaluation')}, "
        f"{counted(replayed.selections, 'selection')} of which {replayed.dropped} dropped"
    )
    for count, noun, what in counts:
        if count:
            print_text(f"  {counted(count, noun)}{what}")
    print_text(
        f"  {counted(outcome.elite_count, 'elite')}, statistics, gradient field and spend are equal"
    )
    print_text(f"  both export files have SHA-256 {outcome.export_sha256}")


def _clip(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"
