"""`kfoundry runs`: list runs, show one, its winner, and its report.

The commands that watch, copy and replay a run, and show its exchanges, stand in modules of their
own.
"""

import sys
import time
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from kernel_foundry.cli.account import show_account
from kernel_foundry.cli.console import PrintableConsole
from kernel_foundry.cli.name import as_called
from kernel_foundry.cli.options import json_option, open_foundry, target_options
from kernel_foundry.cli.output import print_exact, print_json, print_text
from kernel_foundry.cli.runs_candidate import candidate_command, diff_command
from kernel_foundry.cli.runs_delete import delete_command
from kernel_foundry.cli.runs_exchanges import exchanges_command
from kernel_foundry.cli.runs_record import record_command
from kernel_foundry.cli.runs_rename import rename_command
from kernel_foundry.cli.runs_replay import replay_command
from kernel_foundry.cli.runs_steer import show_steering, steer_command
from kernel_foundry.cli.runs_transfer import export_command, import_command
from kernel_foundry.cli.runs_watch import watch
from kernel_foundry.cli.summary import show_archive_map, show_islands, show_stats, show_sweeps
from kernel_foundry.cli.winning_run import run_with_winner
from kernel_foundry.domain.archive import Elite, Run
from kernel_foundry.domain.plain import to_plain
from kernel_foundry.printable import one_line
from kernel_foundry.sdk.loop.promotion import winner
from kernel_foundry.sdk.report.write import write_report
from kernel_foundry.sdk.run_account import account_object, ask_account
from kernel_foundry.sdk.run_objects import candidate_text, run_object
from kernel_foundry.sdk.steering import steering_events, steering_object
from kernel_foundry.sdk.sweep_files import sweep_paths
from kernel_foundry.sdk.verdict_text import evaluation_object, headline_text, winner_text


@click.group()
def command() -> None:
    """List, show, watch, steer, report, copy, replay, rename or delete runs.

    RUN defaults to the newest.
    """


command.add_command(watch)
command.add_command(export_command)
command.add_command(import_command)
command.add_command(replay_command)
command.add_command(exchanges_command)
command.add_command(record_command)
command.add_command(delete_command)
command.add_command(candidate_command)
command.add_command(diff_command)
command.add_command(steer_command)
command.add_command(rename_command)


@command.command("list")
@click.option("--mine", is_flag=True, help="Only runs of your own token's user.")
@json_option
@target_options
def list_runs(mine: bool, as_json: bool, **targets: Any) -> int:
    """List all runs, newest first.

    The number of evaluations includes those at the end, which measure leading candidates again.

    \b
    kfoundry runs list
    kfoundry runs list --mine --archive host:50052
    """  # noqa: D301  a backspace keeps click from joining the lines
    with open_foundry(**targets) as foundry:
        runs = foundry.runs(mine=mine)
    if as_json:
        print_json([run_object(run) for run in runs])
        return 0
    console = PrintableConsole()
    if not runs:
        console.print(f"no runs yet: `{as_called('optimize TASK')}` makes one")
    for run in runs:
        _show_listed(console, run)
    return 0


def _show_listed(console: PrintableConsole, run: Run) -> None:
    """Print lines, not a table: names are long, and terminals are narrow."""
    created = time.strftime("%Y-%m-%d %H:%M", time.localtime(run.created_unix_s))
    best = headline_text(run.best_speedup, run.best_speedup_interval)
    counts = f"  {run.state.value:<11} {run.evaluation_count:>5} evaluations  {best}"
    about = f"  {run.spec.task.name} on {run.spec.device}, {created}, {run.cost_usd:.2f} USD"
    about += f", of {run.owner}" if run.owner else ""
    console.print(one_line(run.spec.name), style="bold", highlight=False, soft_wrap=True)
    console.print(counts, highlight=False, soft_wrap=True)
    console.print(one_line(about), style="dim", highlight=False, soft_wrap=True)


@command.command()
@click.argument("run", default="")
@json_option
@target_options
def show(run: str, as_json: bool, **targets: Any) -> int:
    """Show a run: its settings, the outcomes of its candidates, and its archive.

    Coverage is the share of the 64 cells that have an elite; the QD score is the sum of the elites'
    fitness. Each island has its own emphasis and its own elites; if it stagnates, it receives
    elites of another. The map shows the best candidate of each cell. Cost of models, and repairs by
    kind of finding, are shown if the generator can be reached.

    \b
    kfoundry runs show softmax-1
    """  # noqa: D301  a backspace keeps click from joining the lines
    with open_foundry(**targets) as foundry:
        found = foundry.ask_archive(lambda a: a.get_run(run))
        stats = foundry.ask_archive(lambda a: a.stats(found.spec.name))
        elites = foundry.ask_archive(lambda a: a.elites(found.spec.name))
        announced = foundry.ask_archive(lambda a: winner(a, found.spec.name))
        steered = foundry.ask_archive(lambda a: steering_events(a, found.spec.name))
        asked = ask_account(foundry, found.spec.name)
    if as_json:
        elite_objects = [
            {
                "candidate": e.candidate.digest,
                "cell": e.measures.cell,
                "island": e.island,
                "fitness": e.fitness,
                "speedup": e.evaluation.speedup,
                "speedup_interval": to_plain(e.evaluation.speedup_interval),
                "configuration": {s.name: s.value for s in e.evaluation.configuration},
            }
            for e in elites
        ]
        sweeps = [str(path) for path in sweep_paths(found.spec.name)]
        print_json(
            {
                **run_object(found),
                "stats": to_plain(stats),
                "elites": elite_objects,
                "sweeps": sweeps,
                "steering": steering_object(steered),
                **account_object(asked.account),
            }
        )
        if asked.failure:
            print_text(f"spend and repairs are unknown: {asked.failure}", err=True)
        return 0
    console = PrintableConsole()
    about = (
        f": {found.spec.task.name} in {found.spec.language.value} on {found.spec.device}, "
        f"{found.state.value}, strategy {found.spec.strategy}, models "
        f"{', '.join(found.spec.models)}"
    )
    console.print(Text.assemble((one_line(found.spec.name), "bold"), one_line(about)))
    for limit in found.spec.left_out:
        console.print(f"left out: {limit.text}", style="yellow")
    show_steering(console, steered)
    if announced is not None:
        text = winner_text(announced.evaluation)
        console.print(text, style="bold", highlight=False)
    show_stats(console, stats)
    show_islands(console, stats)
    show_archive_map(console, elites)
    show_account(console, asked)
    show_sweeps(console, found.spec.name)
    return 0


@command.command()
@click.argument("run", default="")
@json_option
@target_options
def best(run: str, as_json: bool, **targets: Any) -> int:
    """Show the winner: speed-up, verdict and candidate text.

    RUN defaults to the newest run in which something passed.

    A file or a pipe gets only the candidate's exact text, for `kfoundry evaluate`; the verdict is
    then shown on stderr.

    \b
    kfoundry runs best > winner.md
    """  # noqa: D301  a backspace keeps click from joining the lines
    with open_foundry(**targets) as foundry:
        found = run_with_winner(foundry, run)
        elite = foundry.best(found.spec.name)
    if as_json:
        print_json(best_object(found, elite))
        return 0
    from kernel_foundry.cli.evaluate import show as show_evaluation

    is_for_people = sys.stdout.isatty()
    console = PrintableConsole(stderr=not is_for_people)
    console.print(f"{found.spec.name}, candidate {elite.candidate.digest[:8]}", highlight=False)
    show_evaluation(console, elite.evaluation, elite.candidate.source.device_code)
    if is_for_people:
        print_text(candidate_text(elite))
    else:
        print_exact(candidate_text(elite))
    return 0


@command.command()
@click.argument("run", default="")
@click.option("--out", type=click.Path(path_type=Path), help="File to write.")
@target_options
def report(run: str, out: Path | None, **targets: Any) -> int:
    """Write the HTML report of a run: one self-contained file.

    \b
    kfoundry runs report softmax-1 --out softmax.html
    """  # noqa: D301  a backspace keeps click from joining the lines
    with open_foundry(**targets) as foundry:
        found = foundry.ask_archive(lambda a: a.get_run(run))
        path = write_report(foundry, found.spec.name, out)
    print_text(path)
    return 0


def best_object(run: Run, elite: Elite) -> dict[str, Any]:
    """Return the `--json` object of a run's winner."""
    return {
        "run": run.spec.name,
        "task": run.spec.task.name,
        "speedup": elite.evaluation.speedup,
        "speedup_interval": to_plain(elite.evaluation.speedup_interval),
        "speedup_eager": elite.evaluation.speedup_eager,
        "speedup_eager_interval": to_plain(elite.evaluation.speedup_eager_interval),
        "configuration": {s.name: s.value for s in elite.evaluation.configuration},
        "candidate": candidate_text(elite),
        "operator": elite.candidate.operator.value,
        "model": elite.candidate.model,
        "generation": elite.candidate.generation,
        "parents": list(elite.candidate.parents),
        "evaluation": evaluation_object(elite.evaluation, task_name=run.spec.task.name),
    }
