"""`kfoundry evaluate`: judge one candidate and show the verdict."""

import json
import sys
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from kernel_foundry.cli.options import device_of, json_option, open_foundry, target_options
from kernel_foundry.domain.evaluation import Evaluation, Setting
from kernel_foundry.domain.finding import Severity
from kernel_foundry.domain.request import EvaluationLimits
from kernel_foundry.task_file import read_task
from kernel_foundry.view import duration, evaluation_object, speedup_text, timing_text

_STYLE = {Severity.INFO: "dim", Severity.WARNING: "yellow", Severity.ERROR: "red"}


@click.command()
@click.argument("task", type=click.Path(path_type=Path))
@click.argument("candidate", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--device", default="", help="Device id such as sycl:0, or an evaluator's address.")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="A TUNE value other than the default; repeat for several.",
)
@click.option(
    "--fresh-baselines",
    is_flag=True,
    help="Time the baselines again, in alternation with the candidate.",
)
@click.option("--build-seconds", default=20.0, show_default=True, help="Deadline of the build.")
@click.option("--run-seconds", default=10.0, show_default=True, help="Deadline of a checked run.")
@json_option
@target_options
def command(
    task: Path,
    candidate: Path,
    device: str,
    settings: tuple[str, ...],
    fresh_baselines: bool,
    build_seconds: float,
    run_seconds: float,
    as_json: bool,
    **targets: Any,
) -> int:
    """Judge CANDIDATE (Markdown with a device-code and a plan block) on TASK.

    TASK is a KernelBench-format Python file, CANDIDATE for example
    examples/softmax.sycl.md. Exit code 0 when it passes, 1 when it does not.
    """
    device, targets["evaluator_target"] = device_of(device, targets["evaluator_target"])
    loaded = read_task(task)
    with open_foundry(**targets) as foundry:
        evaluation = foundry.evaluate(
            loaded,
            candidate,
            device=device,
            configuration=_settings(settings),
            fresh_baselines=fresh_baselines,
            limits=EvaluationLimits(build_seconds=build_seconds, run_seconds=run_seconds),
        )
    if as_json:
        json.dump(evaluation_object(evaluation, task_name=loaded.name), sys.stdout)
        sys.stdout.write("\n")
    else:
        show(Console(), evaluation)
    return 0 if evaluation.passed else 1


def _settings(texts: tuple[str, ...]) -> tuple[Setting, ...]:
    settings = []
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise click.BadParameter(f"{text!r}: expected NAME=VALUE", param_hint="--set")
        settings.append(Setting(name=name.strip(), value=value.strip()))
    return tuple(settings)


def show(console: Console, evaluation: Evaluation) -> None:
    """Print a verdict for people."""
    colour = "green" if evaluation.passed else "red"
    console.print(f"[bold {colour}]{evaluation.outcome.name}[/] on {evaluation.device}")
    if evaluation.passed:
        _show_timings(console, evaluation)
    for finding in evaluation.findings:
        place = f" (line {finding.line})" if finding.line else ""
        console.print(
            f"{finding.severity.value}: {finding.message}{place}",
            style=_STYLE[finding.severity],
            markup=False,
        )
        if finding.hint:
            console.print(f"  → {finding.hint}", style="dim", markup=False)
    stages = ", ".join(f"{s.stage} {s.wall_ms:.0f}" for s in evaluation.stages)
    console.print(f"stages, ms: {stages}", style="dim", markup=False)


def _show_timings(console: Console, evaluation: Evaluation) -> None:
    table = Table("workload", "candidate", "baselines", "speed-up", "of roofline")
    for result in evaluation.workloads:
        if result.timing is None:
            table.add_row(result.workload, "correct", "", "", "")
            continue
        share = result.roofline_share
        table.add_row(
            result.workload,
            timing_text(result.timing),
            ", ".join(f"{b.name} {duration(b.timing.median_ns)}" for b in result.baselines),
            speedup_text(result.speedup),
            "–" if share is None else f"{share:.0%}",
        )
    console.print(table)
    measures = evaluation.measures
    if measures is not None:
        console.print(
            f"fitness {evaluation.fitness:.3f}, cell memory {measures.memory}, "
            f"algorithm {measures.algorithm}, synchronization {measures.synchronization}"
        )
