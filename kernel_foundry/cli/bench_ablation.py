"""`kfoundry bench ablation`: what each mechanism of a run contributes, with any model."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import click
from rich.box import SIMPLE_HEAD
from rich.table import Column, Table

from kernel_foundry.cli.console import PrintableConsole
from kernel_foundry.cli.options import (
    ABOVE_ZERO,
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
from kernel_foundry.domain.archive import STRATEGY_NAMES
from kernel_foundry.domain.mechanisms import MECHANISMS
from kernel_foundry.domain.plain import to_plain
from kernel_foundry.domain.traffic_bound import NEVER
from kernel_foundry.quantity_text import counted
from kernel_foundry.scratch import scratch_folder
from kernel_foundry.sdk.loop.budget import DEFAULT_EVALUATIONS, Budget
from kernel_foundry.sdk.loop.progress import Event, VerdictEvent
from kernel_foundry.sdk.statistics.estimate import Estimate
from kernel_foundry.sdk.task_file import read_task
from landscapes.ablation import Ablation, AblationTrial, TrialResult, ablate
from landscapes.texts import ratio_text

_STORES: Final = ("KERNEL_FOUNDRY_STORE", "KERNEL_FOUNDRY_GENERATOR_STORE")
_DATA: Final = "KERNEL_FOUNDRY_DATA_DIR"


@click.command()
@click.argument("tasks", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True))
@click.option(
    "--without",
    multiple=True,
    type=click.Choice(MECHANISMS),
    help="Take away only these mechanisms, one by one; repeatable.  [default: all of a run with "
    "one model]",
)
@click.option(
    "--seeds",
    "seed_count",
    type=click.IntRange(min=2, max=1000),
    default=5,
    show_default=True,
    help="Runs of each arm on each task.",
)
@click.option("--first-seed", default=0, show_default=True, help="First seed.")
@click.option(
    "--evaluations",
    type=click.IntRange(min=1),
    default=DEFAULT_EVALUATIONS,
    show_default=True,
    help="Budget of each run; all arms have the same.",
)
@click.option("--usd", type=ABOVE_ZERO, help="Hard cap on what the models of one run may cost.")
@click.option(
    "--strategy",
    type=click.Choice(STRATEGY_NAMES),
    default="gradient",
    show_default=True,
    help="How parents are selected; the default is the one that gives directions.",
)
@language_option("Language of the kernels.  [default: that of --device, else sycl]")
@click.option("--in-flight", default=2, show_default=True, help="Proposals at the same time.")
@device_option
@model_option
@json_option
@target_options
def ablation(
    tasks: tuple[Path, ...],
    without: tuple[str, ...],
    seed_count: int,
    first_seed: int,
    evaluations: int,
    usd: float | None,
    strategy: str,
    language: str | None,
    in_flight: int,
    device: str,
    models: tuple[str, ...],
    as_json: bool,
    **targets: Any,
) -> int:
    """Measure what each mechanism contributes: optimise TASKS with all of them, and without each.

    All runs have the same number of evaluations, and each starts with an empty archive and no
    lessons, unless --archive or --generator names a service. Under each seed every arm runs once;
    arms are compared in pairs, by the final and the mean best fitness.

    \b
    kfoundry bench ablation examples/softmax.py --seeds 3
    """  # noqa: D301  a backspace keeps click from joining the lines
    device, targets["evaluator"] = device_of(device, targets["evaluator"])
    loaded = {path.stem: read_task(path) for path in tasks}
    if len(loaded) < len(tasks):
        raise click.UsageError("two tasks have the same name")
    budget = Budget(evaluations=evaluations, cost_usd=usd, stop_at=NEVER)

    def run(trial: AblationTrial) -> TrialResult:
        curve: list[float] = []

        def listen(event: Event) -> None:
            if isinstance(event, VerdictEvent) and not event.is_promotion:
                best = event.best.fitness if event.best is not None else 0.0
                missing = event.spent.evaluations - len(curve)
                curve.extend([best] * missing)

        with _own_data_folder(), open_foundry(**targets) as foundry:
            result = foundry.optimize(
                loaded[trial.task],
                language=language_of(language, device),
                device=device,
                models=models,
                budget=budget,
                strategy=strategy,
                seed=trial.seed,
                in_flight=in_flight,
                without=trial.without,
                run=f"ablation-{trial.task}-{trial.arm}-{trial.seed}",
                listener=listen,
            )
        speedup = result.winner.evaluation.speedup if result.winner is not None else None
        return TrialResult(
            curve=tuple(curve),
            speedup=speedup,
            usd=result.spent.cost_usd,
            tokens=result.spent.tokens,
        )

    def progress(done: int, total: int) -> None:
        print_text(f"{done} of {counted(total, 'run')}", err=True)

    found = ablate(
        run,
        tasks=tuple(loaded),
        seeds=range(first_seed, first_seed + seed_count),
        evaluations=evaluations,
        without=without,
        on_progress=progress,
    )
    if as_json:
        print_json(to_plain(found))
    else:
        _show(found)
    return 0


@contextmanager
def _own_data_folder() -> Iterator[None]:
    """Give local services a data folder that is deleted after the run."""
    kept = {name: os.environ.pop(name) for name in (*_STORES, _DATA) if name in os.environ}
    with scratch_folder("ablation") as folder:
        os.environ[_DATA] = str(folder)
        try:
            yield
        finally:
            del os.environ[_DATA]
            os.environ.update(kept)


def ablation_table(found: Ablation) -> Table:
    """Return a table with the results of each arm."""
    table = Table(
        Column("without", no_wrap=True),
        *(
            Column(heading, justify="right")
            for heading in ("final fitness", "− full", "on the way", "− full", "solved", "speed-up")
        ),
        Column("USD", justify="right"),
        box=SIMPLE_HEAD,
        title=f"{', '.join(found.tasks)}: {counted(len(found.seeds), 'seed')}, "
        f"{counted(found.evaluations, 'evaluation')} each",
        title_justify="left",
    )
    for arm in found.arms:
        table.add_row(
            "nothing (full)" if arm.final_difference is None else arm.arm,
            ratio_text(arm.final_fitness),
            _difference_text(arm.final_difference),
            ratio_text(arm.mean_fitness),
            _difference_text(arm.mean_difference),
            f"{arm.solved.value:.0%}",
            "–" if arm.speedup is None else f"{arm.speedup:.2f}×",
            f"{arm.usd:.2f}",
        )
    return table


def _difference_text(difference: Estimate | None) -> str:
    if difference is None:
        return ""
    mark = " *" if difference.excludes_zero else ""
    return f"{difference.value:+.2f} [{difference.low:+.2f}, {difference.high:+.2f}]{mark}"


def _show(found: Ablation) -> None:
    console = PrintableConsole() if sys.stdout.isatty() else PrintableConsole(width=120)
    console.print(ablation_table(found))
    console.print(
        "Fitness with 95 % intervals over seeds; differences to the full search are paired "
        "by seed, * where the interval excludes zero. Below zero: the mechanism pays."
    )
