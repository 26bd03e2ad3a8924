"""`kfoundry optimize`: search for the fastest correct kernel of a task."""

import contextlib
import math
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import click
from click.core import ParameterSource

from kernel_foundry.cli.live import LiveProgress, PlainProgress
from kernel_foundry.cli.main import EXIT_NOTHING_CORRECT
from kernel_foundry.cli.name import as_called
from kernel_foundry.cli.optimize_classes import run_on_classes
from kernel_foundry.cli.options import (
    ABOVE_ZERO,
    degenerate_option,
    device_of,
    device_option,
    json_option,
    language_of,
    language_option,
    model_option,
    open_foundry,
    target_options,
)
from kernel_foundry.cli.output import print_json, print_text
from kernel_foundry.cli.runs import best_object
from kernel_foundry.cli.summary import show_summary
from kernel_foundry.domain.archive import DEFAULT_STRATEGY, STRATEGY_NAMES
from kernel_foundry.domain.mechanisms import MECHANISMS
from kernel_foundry.domain.request import EvaluationLimits
from kernel_foundry.domain.traffic_bound import AT_TRAFFIC_BOUND, NEVER
from kernel_foundry.errors import KernelFoundryError, LlmConfigurationError
from kernel_foundry.sdk.client import Foundry
from kernel_foundry.sdk.loop.budget import DEFAULT_EVALUATIONS, LEAST_EVALUATIONS, Budget
from kernel_foundry.sdk.loop.progress import (
    AdmissionEvent,
    Event,
    Listener,
    RunResult,
    VerdictEvent,
)
from kernel_foundry.sdk.loop.promotion import PROMOTIONS
from kernel_foundry.sdk.report.write import write_record_beside, write_report
from kernel_foundry.sdk.task_file import read_task


class StopShare(click.ParamType[float]):
    """A share of the traffic bound, above 0 and at most 1, or "never"."""

    name = "share"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the share; `NEVER` for "never"."""
        if str(value) == "never":
            return NEVER
        try:
            share = float(value)
        except ValueError:
            share = math.nan
        if not 0 < share <= 1:
            self.fail(f"{value!r} is neither a share such as 0.97 nor never", param, ctx)
        return share


@click.command()
@click.argument("task", required=False, type=click.Path(path_type=Path))
@language_option("Language of the kernels.  [default: that of --device, else sycl]")
@device_option
@model_option
@click.option(
    "--evaluations",
    type=click.IntRange(min=1),
    help="Most evaluations of the run. At its end up to "
    f"{PROMOTIONS} leading candidates are measured again, which does not count.  "
    f"[default: {DEFAULT_EVALUATIONS}, unless --minutes or --usd is given]",
)
@click.option(
    "--minutes",
    type=ABOVE_ZERO,
    help="Most wall-clock minutes of the run, from the admission of its task.",
)
@click.option("--usd", type=ABOVE_ZERO, help="Hard cap on the cost of models, in dollars.")
@click.option(
    "--tokens",
    type=click.IntRange(min=1),
    help="Hard cap on the run's input and output tokens together.",
)
@click.option(
    "--stop-at",
    type=StopShare(),
    envvar="KERNEL_FOUNDRY_STOP_AT",
    metavar="SHARE|never",
    help="End early when the best kernel reaches this share of the traffic bound on every timed "
    f"workload, after at least {LEAST_EVALUATIONS} evaluations.  [default: {AT_TRAFFIC_BOUND}; "
    "--resume keeps the run's]",
)
@click.option(
    "--requests-per-minute",
    type=click.IntRange(min=1),
    help="Most requests per minute to all models together.",
)
@click.option("--run", "run_name", default="", help="Name of the run.  [default: a new name]")
@click.option(
    "--resume",
    is_flag=True,
    help="Continue --run, or the newest run, with its budget, unless options here replace it. "
    "Give --in-flight, --build-seconds and --run-seconds again: they are not stored.",
)
@click.option(
    "--strategy",
    type=click.Choice(STRATEGY_NAMES),
    default=DEFAULT_STRATEGY,
    show_default=True,
    help="How parents are selected. fitness: fitter elites more often; gradient: the same, and "
    "proposals aim where earlier steps gained; sliding: as fitness, with inspirations from a finer "
    "map; curiosity: elites whose children entered the archive; uniform: all elites with the same "
    "probability; best_of_n: no parents, only independent seeds.",
)
@click.option("--seed", default=0, show_default=True, help="Seed of all random choices.")
@click.option(
    "--in-flight",
    type=click.IntRange(min=1),
    default=2,
    show_default=True,
    help="Proposals being made at the same time.",
)
@click.option(
    "--without",
    multiple=True,
    type=click.Choice(MECHANISMS),
    help="Switch off a mechanism, to see its effect; repeatable. It is stored with the run. "
    "direction has an effect only with --strategy gradient.",
)
@click.option(
    "--from",
    "start_from",
    multiple=True,
    metavar="FILE|RUN",
    help="Start from a candidate file (.md) or the elites of another run, which are judged first "
    "if they bind to TASK; or from code (.cu, .cpp, .h, .py), which models see and which is never "
    "run. Repeatable. --resume judges those that are left. Verified kernels of earlier "
    "runs of similar tasks are used anyway, see `experience kernels` and --without shelf.",
)
@click.option(
    "--build-seconds",
    type=ABOVE_ZERO,
    default=20.0,
    show_default=True,
    help="Deadline of a build.",
)
@click.option(
    "--run-seconds",
    type=ABOVE_ZERO,
    default=10.0,
    show_default=True,
    help="Deadline of a checked run.",
)
@degenerate_option
@json_option
@target_options
def command(
    task: Path | None,
    language: str | None,
    device: str,
    models: tuple[str, ...],
    evaluations: int | None,
    minutes: float | None,
    usd: float | None,
    tokens: int | None,
    stop_at: float | None,
    requests_per_minute: int | None,
    run_name: str,
    resume: bool,
    strategy: str,
    seed: int,
    in_flight: int,
    without: tuple[str, ...],
    start_from: tuple[str, ...],
    build_seconds: float,
    run_seconds: float,
    admit_degenerate: bool,
    as_json: bool,
    **targets: Any,
) -> int:
    """Search for the fastest correct kernel of TASK, a KernelBench-format Python file.

    \b
    kfoundry optimize examples/softmax.py --evaluations 40
    kfoundry optimize my_op.py --model openai/gpt-5 --usd 2 --minutes 30
    kfoundry optimize --resume                       continues the newest run
    kfoundry optimize my_op.py --device h200,rtx4090,sycl --evaluator fleet.yaml

    With several devices there is one run for each class of devices. They share candidates and
    lessons, and at the end each winner is judged on the other classes (docs/fleet.md).

    Ctrl-C is safe: all verdicts are stored. The exit code is 1 if nothing correct was found,
    and 3 if none of the models can do the task.
    """  # noqa: D301  a backspace keeps click from joining the lines
    if (task is None) == (not resume):
        raise click.UsageError("give a TASK file, or --resume to continue a run")
    if not resume and evaluations is None and minutes is None and usd is None:
        evaluations = DEFAULT_EVALUATIONS
    budget = Budget(
        evaluations=evaluations,
        minutes=minutes,
        cost_usd=usd,
        tokens=tokens,
        requests_per_minute=requests_per_minute,
        stop_at=stop_at,
    )
    limits = EvaluationLimits(build_seconds=build_seconds, run_seconds=run_seconds)
    if "," in device and not resume:
        assert task is not None
        if language is not None:
            raise click.UsageError("--language: each class of devices has its own; leave it out")
        arguments = {
            "devices": tuple(part.strip() for part in device.split(",") if part.strip()),
            "models": models,
            "budget": budget,
            "limits": limits,
            "run": run_name,
            "strategy": strategy,
            "seed": seed,
            "in_flight": in_flight,
            "without": without,
            "start_from": start_from,
        }
        loaded = read_task(task, admit_degenerate=admit_degenerate)
        return run_on_classes(loaded, arguments, targets, as_json=as_json)
    device, targets["evaluator"] = device_of(device, targets["evaluator"])
    if resume:
        _warn_of_ignored_options(device)
    progress = LiveProgress() if _is_terminal() and not as_json else PlainProgress()
    with open_foundry(**targets) as foundry:
        with _resume_hint(progress.on) as listener, progress:
            if resume:
                result = foundry.resume(
                    run_name,
                    budget=budget,
                    limits=limits,
                    models=models if _is_given("models") else (),
                    strategy=strategy if _is_given("strategy") else "",
                    in_flight=in_flight,
                    listener=listener,
                )
            else:
                assert task is not None
                loaded = read_task(task, admit_degenerate=admit_degenerate)
                if usd is not None and _is_free(foundry, models):
                    evaluations = evaluations or (None if minutes else DEFAULT_EVALUATIONS)
                    budget = replace(budget, evaluations=evaluations)
                    print_text("recipes cost nothing: --usd sets no limit here", err=True)
                result = foundry.optimize(
                    loaded,
                    language=language_of(language, device),
                    device=device,
                    models=models,
                    budget=budget,
                    limits=limits,
                    run=run_name,
                    strategy=strategy,
                    seed=seed,
                    in_flight=in_flight,
                    without=without,
                    start_from=start_from,
                    listener=listener,
                )
        return _finish(foundry, result, as_json=as_json)


def _is_free(foundry: Foundry, models: tuple[str, ...]) -> bool:
    """Whether only the built-in recipes would be asked."""
    asked = models or foundry.ask_generator(lambda g: g.list_models())[:1]
    return set(asked) == {_RECIPES}


_RECIPES: Final = "recipes"

_KEPT: Final = {
    "language": "--language",
    "device": "--device",
    "seed": "--seed",
    "without": "--without",
    "start_from": "--from",
    "admit_degenerate": "--admit-degenerate",
}
"""Parameters that are stored with a run, which --resume cannot change, and their options."""


def _is_given(parameter: str) -> bool:
    """Whether a parameter was given on the command line."""
    source = click.get_current_context().get_parameter_source(parameter)
    return source is ParameterSource.COMMANDLINE


def _warn_of_ignored_options(device: str) -> None:
    ignored = [option for name, option in _KEPT.items() if _is_given(name)]
    if not device and "--device" in ignored:
        ignored.remove("--device")  # it was an evaluator's address
    if ignored:
        print_text(f"--resume ignores {', '.join(ignored)}: the run keeps its own", err=True)


@contextlib.contextmanager
def _resume_hint(show: Listener) -> Iterator[Listener]:
    """Yield a listener; if the run ends early, print the command that continues it."""
    run, judged = "", False

    def listen(event: Event) -> None:
        nonlocal run, judged
        if isinstance(event, AdmissionEvent):
            run, judged = event.run.spec.name, event.run.evaluation_count > 0
        judged |= isinstance(event, VerdictEvent)
        show(event)

    try:
        yield listen
    except (KernelFoundryError, KeyboardInterrupt) as error:
        # A run of which nothing was judged is not kept where a model cannot be asked.
        if run and (judged or not isinstance(error, LlmConfigurationError)):
            words = f"optimize --resume --run {run}"
            print_text(f"run {run} is stored: `{as_called(words)}` continues it", err=True)
        raise


def _finish(foundry: Foundry, result: RunResult, *, as_json: bool) -> int:
    name = result.run.spec.name
    report = write_report(foundry, name)
    record = write_record_beside(report, result)
    if as_json:
        answer = {
            "run": name,
            "report": str(report),
            "record": record and str(record),
            "best": best_object(result.run, result.winner) if result.winner else None,
        }
        print_json(answer)
    else:
        show_summary(foundry, result, report, record)
    return 0 if result.winner else EXIT_NOTHING_CORRECT


def _is_terminal() -> bool:
    return sys.stderr.isatty()
