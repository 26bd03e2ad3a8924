"""`kfoundry suite matrix`: judge winners on other devices; or show suites side by side."""

from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from typing import Any, Final

import click

from kernel_foundry.cli.console import PrintableConsole
from kernel_foundry.cli.main import EXIT_NOTHING_CORRECT
from kernel_foundry.cli.options import json_option, open_foundry, target_options
from kernel_foundry.cli.output import print_json, print_text
from kernel_foundry.cli.suite_show import open_results
from kernel_foundry.cli.table import numbers, plain_table, whole
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.domain.plain import to_plain
from kernel_foundry.paths import matrix_dir, suites_path
from kernel_foundry.printable import one_line
from kernel_foundry.process_identity import new_holder
from kernel_foundry.quantity_text import counted
from kernel_foundry.sdk.statistics.estimate_text import ratio_text, share_text
from kernel_foundry.sdk.suite.cross_hardware.crossing import KEPT, CrossedWinner
from kernel_foundry.sdk.suite.cross_hardware.matrix import SuiteMatrix, suite_matrix
from kernel_foundry.sdk.suite.cross_hardware.table import MatrixCell, MatrixNumbers
from kernel_foundry.sdk.suite.kept_verdicts import KeptVerdicts
from kernel_foundry.sdk.suite.side_by_side import SideBySide, side_by_side
from kernel_foundry.sdk.suite.store.store import SuiteStore
from kernel_foundry.sdk.verdict_text import evaluation_object, headline_text

_FIGURES: Final[tuple[tuple[str, Callable[[MatrixNumbers], str]], ...]] = (
    ("correct", lambda found: share_text(found.correctness)),
    ("above 1×", lambda found: share_text(found.above_1)),
    ("geometric mean", lambda found: ratio_text(found.geometric_mean)),
    ("median", lambda found: ratio_text(found.median)),
    ("own kernels over these", lambda found: ratio_text(found.own_over_it)),
    ("own kernels faster", lambda found: share_text(found.own_is_faster)),
)


@click.command("matrix")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option(
    "--side-by-side",
    "is_side_by_side",
    is_flag=True,
    help="Judge nothing: show each task's speed-up in each suite, such as one for each model.",
)
@json_option
@target_options
def matrix_command(
    names: tuple[str, ...], is_side_by_side: bool, as_json: bool, **targets: Any
) -> int:
    """Judge the winners of suites on every other class of devices that the evaluator has.

    \b
    kfoundry suite run level1 --name h200 --device cuda:0@gpu1 --evaluator gpu1:50051,gpu2:50051
    kfoundry suite run level1 --name a100 --device cuda:0@gpu2 --evaluator gpu1:50051,gpu2:50051
    kfoundry suite matrix h200 a100 --evaluator gpu1:50051,gpu2:50051

    Rows are devices that kernels were tuned on, columns those that they ran on. Each winner is
    judged there as it is and after a sweep of its TUNE parameters, in alternation with baselines.
    "Own kernels over these" is the speed-up of the kernels that were tuned on the column's device
    over the row's. CUDA and SYCL kernels cannot be exchanged: each runs only on its own devices.

    Verdicts are stored, so the same command continues after Ctrl-C or a kill, and later with more
    devices or suites. Exit code 0 if every winner was judged everywhere, else 1.
    """  # noqa: D301  a backspace keeps click from joining the lines
    if is_side_by_side:
        suites = open_results(names, **targets)
        side = side_by_side([(suite.plan, results) for suite, results in suites])
        if as_json:
            print_json(to_plain(side))
        else:
            _show_side_by_side(side)
        return 0
    try:
        found = _crossed(names, **targets)
    except KeyboardInterrupt:
        print_text("verdicts are stored: the same command continues", err=True)
        raise
    if as_json:
        print_json(matrix_object(found))
    else:
        show_matrix(found)
    is_whole = all(one.as_it_is and one.re_swept for one in found.crossed)
    return 0 if is_whole else EXIT_NOTHING_CORRECT


def _crossed(names: tuple[str, ...], **targets: Any) -> SuiteMatrix:
    """Judge what is left; the suites are locked for other processes meanwhile."""
    with ExitStack() as held:
        store = held.enter_context(closing(SuiteStore(suites_path())))
        suites = {suite.plan.name: suite for suite in map(store.find, names)}
        kept = {}
        for name, suite in suites.items():
            store.hold(suite, new_holder())
            held.callback(store.free, suite)
            kept[name] = held.enter_context(closing(KeptVerdicts(matrix_dir(name), KEPT)))
        known = [(s.plan, results) for s, results in open_results(tuple(suites), **targets)]
        foundry = held.enter_context(open_foundry(**targets))
        return foundry.ask_evaluator(lambda e: suite_matrix(e, known, kept, _say))


def _say(one: CrossedWinner, done: int, total: int) -> None:
    said = one.reason
    if not said:
        said = f"as it is {_verdict_text(one.as_it_is)}, re-swept {_verdict_text(one.re_swept)}"
    name = f"{one.result.entry.title} of {one.tuned.suite} on {one.on.name}"
    print_text(one_line(f"[{done}/{total}] {name}: {said}"), err=True)


def _verdict_text(verdict: Evaluation | None) -> str:
    if verdict is None:
        return "not judged"
    if not verdict.passed:
        return verdict.outcome.value
    return headline_text(verdict.speedup, verdict.speedup_interval)


def show_matrix(found: SuiteMatrix) -> None:
    """Print the table, and below it notes on what it leaves out."""
    titles = _titles(found)
    table = plain_table(whole("tuned on"), "kernels", whole(""), *numbers(*titles.values()))
    for row in found.rows:
        for kind, of in (
            ("as they are", [cell.as_it_is for cell in row.cells]),
            ("re-swept", [cell.re_swept for cell in row.cells]),
        ):
            for at, (figure, text) in enumerate(_FIGURES):
                cells = [
                    text(n) if n is not None else "" if at else _nothing(cell, row.tuned_on)
                    for n, cell in zip(of, row.cells, strict=True)
                ]
                title = f"{titles[row.tuned_on]} ({row.suite})" if kind == "as they are" else ""
                heads = ("", "") if at else (one_line(title), kind)
                table.add_row(*heads, figure, *cells)
        table.add_section()
    PrintableConsole().print(table)
    for line in _notes(found, titles):
        print_text(one_line(line))


def _titles(found: SuiteMatrix) -> dict[str, str]:
    """The title of each class: its model, or its own name if others have the same model."""
    counts = Counter(device.title for device in found.devices)
    return {d.name: d.title if counts[d.title] == 1 else d.name for d in found.devices}


def _nothing(cell: MatrixCell, tuned_on: str) -> str:
    """Why a cell is empty."""
    if cell.reason:
        return "other language"
    return "tuned here" if cell.device == tuned_on else "not judged"


def _notes(found: SuiteMatrix, titles: Mapping[str, str]) -> list[str]:
    """What the table leaves out, and why."""
    languages = sorted({device.language.value for device in found.devices})
    lines = []
    if found.other_languages or len(languages) > 1:
        others = ", ".join(f"{d.title} ({d.language.value})" for d in found.other_languages)
        lines.append(
            "CUDA and SYCL kernels cannot be crossed: each runs on devices of its language alone"
            + (f"; left out: {others}" if others else "")
        )
    lines += [f"{name} has no winner: nothing of it is judged" for name in found.without_winner]
    lines += [
        f"{counted(len(of.tasks), 'task')} of {of.suite} not counted, since unfinished or passed by"
        f" a trivial answer: {', '.join(of.tasks)}"
        for of in found.left_out
    ]
    if found.rows and not found.crossed:
        lines.append(
            "there is no other class of devices to judge on: --evaluator HOST:PORT,HOST:PORT"
            " names evaluators that have some"
        )
    reasons = Counter((titles[one.on.name], one.reason) for one in found.crossed if one.reason)
    for (device, reason), count in reasons.items():
        lines.append(f"{counted(count, 'winner')} not judged on {device}: {reason}")
    if reasons:
        lines.append("not counted there; the same command judges them")
    return lines


def matrix_object(found: SuiteMatrix) -> dict[str, Any]:
    """Return the `--json` object of a matrix (documented in docs/suites.md)."""
    home = [
        {
            "suite": row.suite,
            "tuned_on": row.home.name,
            "ran_on": row.home.name,
            "task": run.entry.task.name,
            "run": run.entry.run,
            "as_it_is": _evaluation(run.verdict, run.entry.task.name),
            "re_swept": None,
            "swept_count": 0,
            "reason": "",
        }
        for row in found.tuned
        for run in row.winners
    ]
    elsewhere = [
        {
            "suite": one.tuned.suite,
            "tuned_on": one.tuned.home.name,
            "ran_on": one.on.name,
            "task": one.result.entry.task.name,
            "run": one.result.entry.run,
            "as_it_is": _evaluation(one.as_it_is, one.result.entry.task.name),
            "re_swept": _evaluation(one.re_swept, one.result.entry.task.name),
            "swept_count": one.re_swept.swept_count if one.re_swept else 0,
            "reason": one.reason,
        }
        for one in found.crossed
    ]
    return {
        "devices": to_plain(found.devices),
        "rows": to_plain(found.rows),
        "winners": home + elsewhere,
        "other_languages": to_plain(found.other_languages),
        "without_winner": list(found.without_winner),
        "left_out": to_plain(found.left_out),
    }


def _evaluation(verdict: Evaluation | None, task_name: str) -> dict[str, Any] | None:
    return None if verdict is None else evaluation_object(verdict, task_name=task_name)


def _show_side_by_side(found: SideBySide) -> None:
    suites = (f"{one.suite} ({', '.join(one.devices)})" for one in found.suites)
    table = plain_table(whole("task"), *numbers(*suites))
    for task in found.tasks:
        cells = ["" if not cell.counts else ratio_text(cell.speedup) for cell in task.cells]
        table.add_row(one_line(task.task), *cells)
    table.add_section()
    table.add_row("geometric mean", *(ratio_text(one.geometric_mean) for one in found.suites))
    table.add_row("fast_1", *(share_text(one.fast_1) for one in found.suites))
    table.add_row("solved", *(share_text(one.correctness) for one in found.suites))
    PrintableConsole().print(table)
