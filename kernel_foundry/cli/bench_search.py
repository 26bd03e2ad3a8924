"""`kfoundry bench search`: compare search strategies on recorded landscapes."""

import os
from pathlib import Path
from typing import Self

import click
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from kernel_foundry.cli.console import PrintableConsole
from kernel_foundry.cli.options import json_option
from kernel_foundry.cli.output import print_json, print_text
from kernel_foundry.domain.archive import STRATEGY_NAMES
from kernel_foundry.domain.plain import to_plain
from landscapes.compare import compare_strategies
from landscapes.plot import check_plots, write_comparison_plot
from landscapes.report import write_comparison_report
from landscapes.strategy_results import SearchComparison
from landscapes.tables import landscape_table, overall_table

_FILE = click.Path(path_type=Path, dir_okay=False, writable=True)


@click.command()
@click.option(
    "--landscape",
    "landscapes",
    type=click.Path(path_type=Path),
    multiple=True,
    help="Landscape file; may be given several times, or as arguments.",
)
@click.argument("files", nargs=-1, type=click.Path(path_type=Path), metavar="[FILE]...")
@click.option(
    "--strategies",
    default="",
    metavar="A,B,…",
    help=f"Strategies, or ablations such as gradient-no-f.  [default: {', '.join(STRATEGY_NAMES)}]",
)
@click.option(
    "--seeds",
    "seed_count",
    type=click.IntRange(min=2, max=5000),
    default=100,
    show_default=True,
    help="Searches of each strategy on each landscape.",
)
@click.option(
    "--evaluations",
    type=click.IntRange(min=1),
    help="Budget of a search.  [default: half of a landscape's variants, at most 200]",
)
@click.option(
    "--first-seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="First seed; other seeds give an independent repetition.",
)
@click.option(
    "--processes",
    type=click.IntRange(min=1),
    help="Searches that run in parallel.  [default: one for each processor]",
)
@click.option("--report", type=_FILE, help="HTML report to write.")
@click.option("--plot", type=_FILE, help="PNG file to write with the curves; needs matplotlib.")
@json_option
def search(
    landscapes: tuple[Path, ...],
    files: tuple[Path, ...],
    strategies: str,
    seed_count: int,
    evaluations: int | None,
    first_seed: int,
    processes: int | None,
    report: Path | None,
    plot: Path | None,
    as_json: bool,
) -> int:
    """Compare search strategies on recorded landscapes (--landscape FILE…).

    A landscape holds all variants of a kernel family with their measured times; docs/landscapes.md
    has the format. Each search proposes variants with the archive's strategy and gets verdicts from
    the table, so hundreds of searches take minutes and need no device.

    \b
    kfoundry bench search --landscape landscape.json --seeds 100
    """  # noqa: D301  a backspace keeps click from joining the lines
    chosen = (*landscapes, *files)
    if not chosen:
        raise click.UsageError(
            "give at least one landscape: --landscape FILE; docs/landscapes.md says how to make one"
        )
    if plot is not None:
        check_plots()
    with _Progress(is_quiet=as_json) as progress:
        comparison = compare_strategies(
            chosen,
            strategies=[s.strip() for s in strategies.split(",") if s.strip()],
            seed_count=seed_count,
            first_seed=first_seed,
            evaluations=evaluations,
            processes=processes or len(os.sched_getaffinity(0)),
            on_progress=progress.show,
        )
    if report is not None:
        write_comparison_report(comparison, report)
    if plot is not None:
        write_comparison_plot(comparison, plot)
    if as_json:
        print_json(to_plain(comparison))
    else:
        _show(comparison)
    for written in (report, plot):
        if written is not None:
            print_text(f"written: {written}", err=True)
    return 0


class _Progress:
    """A bar on a terminal, else a line for each tenth; nothing with --json."""

    def __init__(self, *, is_quiet: bool) -> None:
        self._console = PrintableConsole(stderr=True)
        self._has_lines = not is_quiet and not self._console.is_terminal
        self._tenths = 0
        self._bar = Progress(
            TextColumn("searches", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=self._console,
            transient=True,
            disable=is_quiet or not self._console.is_terminal,
        )
        self._task = self._bar.add_task("searches", total=None)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._bar.stop()

    def show(self, done: int, total: int) -> None:
        """Show that `done` of `total` searches have ended."""
        self._bar.update(self._task, completed=done, total=total)
        tenths = 10 * done // total
        if self._has_lines and tenths > self._tenths:
            self._tenths = tenths
            print_text(f"{done} of {total} searches", err=True)


def _show(comparison: SearchComparison) -> None:
    console = PrintableConsole()
    percent = f"{comparison.target:.0%}"
    for landscape in comparison.landscapes:
        console.print(landscape_table(landscape, percent))
    if comparison.overall:
        console.print(overall_table(comparison.overall, len(comparison.landscapes)))
    console.print(
        f"{comparison.seed_count} seeds. Evaluations: mean until a variant with {percent} of the "
        "best speed was judged [95 % interval]; a search that did not get there counts as its "
        "budget + 1. Differences are paired by seed; * where the interval excludes zero. Final: "
        "best speed at the end. Cells: share of the grid.",
    )
