"""`kfoundry sweep`: try every configuration of a candidate, show the landscape and the best."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Self

import click
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from kernel_foundry.cli.console import PrintableConsole
from kernel_foundry.cli.evaluate import show
from kernel_foundry.cli.options import (
    degenerate_option,
    device_of,
    device_option,
    json_option,
    open_foundry,
    target_options,
)
from kernel_foundry.cli.output import print_json
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.domain.finding import errors_first, headline
from kernel_foundry.domain.plain import to_plain
from kernel_foundry.domain.request import EvaluationLimits
from kernel_foundry.domain.sweep import ConfigurationResult, best_of
from kernel_foundry.domain.task import Task
from kernel_foundry.quantity_text import counted
from kernel_foundry.sdk.client import Foundry
from kernel_foundry.sdk.report.t4 import t4_results
from kernel_foundry.sdk.task_file import read_task
from kernel_foundry.sdk.verdict_text import (
    configuration_text,
    duration,
    evaluation_object,
    speedup_text,
)

_TOP: Final = 10


@click.command()
@click.argument("task", type=click.Path(path_type=Path))
@click.argument("candidate", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@device_option
@click.option(
    "--t4",
    "t4_file",
    type=click.Path(path_type=Path, dir_okay=False, writable=True),
    help="File to write with all results in the T4 format.",
)
@click.option(
    "--max-configurations",
    type=click.IntRange(min=1),
    default=1024,
    show_default=True,
    help="Most configurations to try; an even selection of a larger space.",
)
@click.option("--seconds", default=600.0, show_default=True, help="Wall-clock budget.")
@click.option("--build-seconds", default=20.0, show_default=True, help="Deadline of a build.")
@click.option("--run-seconds", default=10.0, show_default=True, help="Deadline of checked runs.")
@degenerate_option
@json_option
@target_options
def command(
    task: Path,
    candidate: Path,
    device: str,
    t4_file: Path | None,
    max_configurations: int,
    seconds: float,
    build_seconds: float,
    run_seconds: float,
    admit_degenerate: bool,
    as_json: bool,
    **targets: Any,
) -> int:
    """Try all configurations of CANDIDATE (its TUNE under WHERE) on TASK.

    Each is built, verified against the reference and raced against the best one; the best is then
    judged as `evaluate` does. Exit code 0 when that one passes, 1 when none does.

    \b
    kfoundry sweep examples/softmax.py my.md --device sycl:0
    """  # noqa: D301  a backspace keeps click from joining the lines
    device, targets["evaluator"] = device_of(device, targets["evaluator"])
    loaded = read_task(task, admit_degenerate=admit_degenerate)
    limits = EvaluationLimits(build_seconds=build_seconds, run_seconds=run_seconds)
    if t4_file is not None:
        t4_file.parent.mkdir(parents=True, exist_ok=True)
    with open_foundry(**targets) as foundry:
        with SweepProgress(PrintableConsole(stderr=True)) as progress:
            results = foundry.sweep(
                loaded,
                candidate,
                device=device,
                limits=limits,
                max_configurations=max_configurations,
                seconds=seconds,
                listener=progress.on,
            )
        best = best_of(results)
        verdict = None if best is None else _judge(foundry, loaded, candidate, device, limits, best)
    if t4_file is not None:
        t4_file.write_text(json.dumps(t4_results(results), indent=1) + "\n")
    if as_json:
        print_json(sweep_object(results, verdict, task_name=loaded.name))
    else:
        show_sweep(PrintableConsole(), results, verdict)
    return 0 if verdict is not None and verdict.passed else 1


def _judge(
    foundry: Foundry,
    task: Task,
    candidate: Path,
    device: str,
    limits: EvaluationLimits,
    best: ConfigurationResult,
) -> Evaluation:
    return foundry.evaluate(
        task, candidate, device=device, configuration=best.configuration, limits=limits
    )


class SweepProgress:
    """Configurations done and the best time so far, on stderr; on a pipe one line at the end."""

    def __init__(self, console: PrintableConsole) -> None:
        self._console = console
        self._bar = Progress(
            TextColumn("sweeping", markup=False),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TextColumn("best {task.fields[best]}", style="bold green", markup=False),
            TimeElapsedColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("sweep", total=None, best="–")
        self._best: ConfigurationResult | None = None
        self._count = 0

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._bar.stop()

    def on(self, result: ConfigurationResult) -> None:
        """Show one result."""
        self._count += 1
        if result.is_correct and (self._best is None or _time(result) < _time(self._best)):
            self._best = result
        best = duration(None if self._best is None else self._best.median_ns)
        self._bar.update(self._task, total=result.total, completed=self._count, best=best)
        if not self._console.is_terminal:
            self._console.print(
                f"[{self._count}/{result.total}] {configuration_text(result.configuration)}: "
                f"{_verdict_text(result)}",
                highlight=False,
                soft_wrap=True,
            )


def show_sweep(
    console: PrintableConsole, results: Sequence[ConfigurationResult], verdict: Evaluation | None
) -> None:
    """Print counts, the best and the worst configurations, and the best one's verdict."""
    counts = Counter(r.validity.value for r in results)
    raced_out = sum(r.raced_out for r in results)
    outcomes = ", ".join(f"{count} {name}" for name, count in counts.most_common())
    console.print(
        f"{counted(len(results), 'configuration')}: {outcomes}; {raced_out} raced out early"
    )
    correct = sorted((r for r in results if r.is_correct), key=_time)
    if correct:
        console.print(_table(correct))
    else:
        _show_failures(console, results)
    if verdict is not None:
        console.print(f"best: {configuration_text(verdict.configuration)}", highlight=False)
        show(console, verdict)


def sweep_object(
    results: Sequence[ConfigurationResult], verdict: Evaluation | None, *, task_name: str
) -> dict[str, Any]:
    """Return the `--json` object of a sweep (documented in docs/cli.md)."""
    counts = Counter(r.validity.value for r in results)
    return {
        "task": task_name,
        "configurations": len(results),
        "validity": dict(counts),
        "raced_out": sum(r.raced_out for r in results),
        "results": [_result_object(r) for r in results],
        "best": None if verdict is None else evaluation_object(verdict, task_name=task_name),
    }


def _table(correct: list[ConfigurationResult]) -> Table:
    table = Table("", "configuration", "median", "95 % interval", "samples", "speed-up")
    for place, result in enumerate(correct[:_TOP], start=1):
        table.add_row(str(place), *_row(result))
    if len(correct) > _TOP:
        table.add_section()
        table.add_row(str(len(correct)), *_row(correct[-1]))
    return table


def _row(result: ConfigurationResult) -> tuple[str, ...]:
    lower, upper = result.bounds_ns or (None, None)
    return (
        configuration_text(result.configuration),
        duration(result.median_ns),
        f"{duration(lower)} – {duration(upper)}",
        str(sum(len(t.timing.samples_ns) for t in result.timings)),
        speedup_text(result.speedup, result.speedup_interval),
    )


def _show_failures(console: PrintableConsole, results: Sequence[ConfigurationResult]) -> None:
    reasons = Counter(filter(None, (headline(r.findings) for r in results)))
    for message, count in reasons.most_common(_TOP):
        console.print(f"{count}×: {message}", style="red")


def _verdict_text(result: ConfigurationResult) -> str:
    if result.is_correct:
        return f"{duration(result.median_ns)}{' (raced out)' if result.raced_out else ''}"
    return f"{result.validity.value} {headline(result.findings)[:100]}"


def _result_object(result: ConfigurationResult) -> dict[str, Any]:
    return {
        "configuration": {s.name: s.value for s in result.configuration},
        "validity": result.validity.value,
        "outcome": result.outcome.name,
        "median_ns": result.median_ns,
        "ci95_ns": to_plain(result.bounds_ns),
        "samples": sum(len(t.timing.samples_ns) for t in result.timings),
        "speedup": result.speedup,
        "speedup_interval": to_plain(result.speedup_interval),
        "raced_out": result.raced_out,
        "times_ms": to_plain(result.times),
        "cached": result.cached,
        "resources": to_plain(result.resources),
        "findings": [f.message for f in errors_first(result.findings)],
    }


def _time(result: ConfigurationResult) -> float:
    return result.median_ns or 0.0
