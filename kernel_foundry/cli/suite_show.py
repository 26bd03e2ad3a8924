"""`kfoundry suite show` and `report`: the results of a suite."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import click

from kernel_foundry.cli.console import PrintableConsole
from kernel_foundry.cli.options import json_option, open_foundry, target_options
from kernel_foundry.cli.output import print_json, print_text
from kernel_foundry.cli.suite_live import clock_text, head_text
from kernel_foundry.cli.table import numbers, plain_table, whole
from kernel_foundry.paths import suite_report_path, suites_path
from kernel_foundry.printable import one_line
from kernel_foundry.quantity_text import counted
from kernel_foundry.sdk.report.suite_report import suite_page, write_suite_report
from kernel_foundry.sdk.statistics.estimate_text import (
    number_text,
    ratio_text,
    score_text,
    share_text,
)
from kernel_foundry.sdk.suite.kept_verdicts import is_judged, judged_suite
from kernel_foundry.sdk.suite.numbers.fast_p import THRESHOLDS
from kernel_foundry.sdk.suite.results import FASTEST, EntryResult, results_of
from kernel_foundry.sdk.suite.store.store import SuiteStore
from kernel_foundry.sdk.suite.suite import Suite
from kernel_foundry.sdk.suite.summary import SuiteSummary, summary_of
from kernel_foundry.sdk.suite.tables import suite_object
from kernel_foundry.sdk.verdict_text import bits_number, headline_text, trust_text


def open_suite(name: str, **targets: Any) -> tuple[Suite, tuple[EntryResult, ...]]:
    """Return a suite with its results; "" is the newest.

    Raises:
        InvalidArgumentError: there is none.
    """
    with closing(SuiteStore(suites_path())) as store:
        suite = store.find(name)
    with open_foundry(**targets) as foundry:
        return suite, foundry.ask_archive(lambda archive: results_of(archive, suite))


def open_results(
    names: Sequence[str], **targets: Any
) -> list[tuple[Suite, tuple[EntryResult, ...]]]:
    """Return suites, and folders of judged kernels as such, with their results.

    Raises:
        InvalidArgumentError: a name is neither that of a suite nor such a folder.
    """
    with closing(SuiteStore(suites_path())) as store:
        suites = store.names()
    return [
        judged_suite(Path(name))
        if name and name not in suites and is_judged(Path(name))
        else open_suite(name, **targets)
        for name in names
    ]


@click.command("show")
@click.argument("name", default="")
@json_option
@target_options
def show_command(name: str, as_json: bool, **targets: Any) -> int:
    """Show a suite's results (fast_p, means and more), and each of its runs.

    NAME may also be the --out folder of `suite judge`.

    fast_p is KernelBench's: the share of all tasks that are solved by a correct kernel that is more
    than p times faster. win@p is the same share of all workloads, shown if tasks have
    several. Geometric mean and
    median are over solved tasks. Intervals of 95 % are over tasks. Tasks that a trivial answer
    passes are not counted; those that were refused or failed count as not solved.

    \b
    kfoundry suite show monday
    """  # noqa: D301  a backspace keeps click from joining the lines
    ((suite, results),) = open_results([name], **targets)
    if as_json:
        print_json(suite_object(suite, results))
        return 0
    console = PrintableConsole()
    print_text(head_text(suite))
    show_numbers(console, summary_of(results))
    show_results(console, results)
    return 0


@click.command("report")
@click.argument("name", default="")
@click.option("--out", type=click.Path(path_type=Path), help="File to write.")
@target_options
def report_command(name: str, out: Path | None, **targets: Any) -> int:
    """Write the HTML report of a suite: one self-contained file.

    \b
    kfoundry suite report monday --out monday.html
    """  # noqa: D301  a backspace keeps click from joining the lines
    suite, results = open_suite(name, **targets)
    path = out or suite_report_path(suite.plan.name)
    write_suite_report(suite_page(suite, results), path)
    print_text(path)
    return 0


def show_numbers(console: PrintableConsole, summary: SuiteSummary) -> None:
    """Print a suite's numbers, with a column for each baseline, and what was not counted."""
    print_text(f"solved: {share_text(summary.correctness)} of {counted(summary.tasks, 'task')}")
    if summary.baselines:
        over = [
            b.baseline if b.baseline != FASTEST else "fastest baseline" for b in summary.baselines
        ]
        table = plain_table("over", *numbers(*over))
        means = [ratio_text(b.geometric_mean) for b in summary.baselines]
        table.add_row("geometric mean", *means)
        table.add_row("median", *(ratio_text(b.median) for b in summary.baselines))
        for at, p in enumerate(THRESHOLDS):
            shares = [share_text(b.fast[at].share) for b in summary.baselines]
            table.add_row(f"fast_{p:g}", *shares)
        if summary.workloads > summary.tasks:  # else win@p is fast_p
            for at, p in enumerate(THRESHOLDS):
                table.add_row(
                    f"win@{p:g}", *(share_text(b.win[at].share) for b in summary.baselines)
                )
        console.print(table)
    if summary.sol_score is not None:
        print_text(
            f"SOL score {score_text(summary.sol_score)} of {counted(summary.sol_scored, 'task')}"
        )
    print_text(
        f"effective bits {number_text(summary.effective_bits)}, device time in own kernels"
        f" {share_text(summary.own_share)}; {counted(summary.evaluations, 'evaluation')},"
        f" {summary.tokens} tokens, {summary.cost_usd:.2f} USD,"
        f" {clock_text(summary.seconds)} of all runs together"
    )
    for count, noun, what in (
        (summary.refused, "run", "refused, counted as not solved"),
        (summary.failed, "run", "failed, counted as not solved"),
        (summary.suspect, "winner", "not fully trusted"),
        (len(summary.unfinished), "task", "not finished, not counted"),
    ):
        if count:
            print_text(f"{counted(count, noun)} {what}")
    if summary.degenerate:
        names = ", ".join(summary.degenerate)
        print_text(one_line(f"not counted, since a trivial answer passes: {names}"))


def show_results(console: PrintableConsole, results: Sequence[EntryResult]) -> None:
    """Print a line for each run."""
    figures = numbers("bits", "USD", "time")
    table = plain_table(whole("task"), "state", "over the fastest baseline", *figures)
    for result in results:
        progress, verdict = result.entry.progress, result.verdict
        gain = one_line(progress.reason) or "–"
        if verdict is not None and (not progress.reason or result.entry.has_ended):
            gain = headline_text(verdict.speedup, verdict.speedup_interval) + trust_text(verdict)
        bits = result.effective_bits
        table.add_row(
            one_line(result.entry.title),
            result.entry.state.value,
            gain,
            "" if bits is None else bits_number(bits),
            f"{progress.cost_usd:.2f}",
            clock_text(progress.seconds),
        )
    console.print(table)
