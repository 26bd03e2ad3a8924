"""`kfoundry bench`: measure the system itself."""

import statistics
import time
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from kernel_foundry.cli.bench_ablation import ablation
from kernel_foundry.cli.bench_model import model
from kernel_foundry.cli.bench_search import search
from kernel_foundry.cli.console import PrintableConsole
from kernel_foundry.cli.options import (
    device_of,
    device_option,
    json_option,
    open_foundry,
    target_options,
)
from kernel_foundry.cli.output import print_json
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.sdk.task_file import read_task


@click.group()
def command() -> None:
    """Measure the system itself."""


command.add_command(search)
command.add_command(ablation)
command.add_command(model)


@command.command()
@click.argument("task", type=click.Path(path_type=Path))
@click.argument("candidates", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True))
@click.option("--repeat", default=1, show_default=True, help="Passes over the candidates.")
@device_option
@json_option
@target_options
def evaluate(
    task: Path,
    candidates: tuple[Path, ...],
    repeat: int,
    device: str,
    as_json: bool,
    **targets: Any,
) -> int:
    """Time to a verdict for CANDIDATES of TASK with a warm judge, with a breakdown by stage.

    Admission happens first and is not counted. A second pass finds every object in the cache.

    \b
    kfoundry bench evaluate examples/softmax.py my.md
    """  # noqa: D301  a backspace keeps click from joining the lines
    device, targets["evaluator"] = device_of(device, targets["evaluator"])
    loaded = read_task(task)
    verdicts: list[tuple[str, float, Evaluation]] = []
    with open_foundry(**targets) as foundry:
        foundry.admit(loaded, device=device)
        for _ in range(repeat):
            for path in candidates:
                started_s = time.perf_counter()
                evaluation = foundry.evaluate(loaded, path, device=device)
                verdicts.append((path.name, time.perf_counter() - started_s, evaluation))
    if as_json:
        print_json(_object(verdicts))
    else:
        _show(verdicts)
    return 0 if all(e.passed for _, _, e in verdicts) else 1


def _object(verdicts: list[tuple[str, float, Evaluation]]) -> dict[str, Any]:
    rows = [
        {
            "candidate": name,
            "seconds": seconds,
            "outcome": e.outcome.name,
            "object_cached": bool(e.compile and e.compile.cached),
            "stages_ms": {s.stage: s.wall_ms for s in e.stages},
        }
        for name, seconds, e in verdicts
    ]
    built = [s for _, s, e in verdicts if e.compile and not e.compile.cached]
    cached = [s for _, s, e in verdicts if e.compile and e.compile.cached]
    return {
        "median_seconds_built": statistics.median(built) if built else None,
        "median_seconds_cached": statistics.median(cached) if cached else None,
        "verdicts": rows,
    }


def _show(verdicts: list[tuple[str, float, Evaluation]]) -> None:
    console = PrintableConsole()
    stages = list(dict.fromkeys(s.stage for _, _, e in verdicts for s in e.stages))
    table = Table("candidate", "outcome", "object", "seconds", *(f"{s} ms" for s in stages))
    for name, seconds, evaluation in verdicts:
        by_stage = {s.stage: s.wall_ms for s in evaluation.stages}
        is_cached = bool(evaluation.compile and evaluation.compile.cached)
        table.add_row(
            name,
            evaluation.outcome.name,
            "cached" if is_cached else "built",
            f"{seconds:.2f}",
            *(f"{by_stage[s]:.0f}" if s in by_stage else "" for s in stages),
        )
    console.print(table)
    summary = _object(verdicts)
    for key in ("built", "cached"):
        median = summary[f"median_seconds_{key}"]
        if median is not None:
            console.print(f"median with object {key}: {median:.2f} s")
