"""`kfoundry suite compare`: what changed between two suites, and whether it is more than noise."""

from typing import Any

import click

from kernel_foundry.cli.console import PrintableConsole
from kernel_foundry.cli.options import json_option, target_options
from kernel_foundry.cli.output import print_json, print_text
from kernel_foundry.cli.suite_show import open_results
from kernel_foundry.cli.table import plain_table, whole
from kernel_foundry.domain.plain import to_plain
from kernel_foundry.printable import one_line
from kernel_foundry.quantity_text import counted
from kernel_foundry.sdk.statistics.estimate_text import difference_text, noise_text, ratio_text
from kernel_foundry.sdk.suite.comparison import Change, SuiteComparison, compare

_STYLES = {
    Change.FASTER: "green",
    Change.SOLVED: "green",
    Change.SLOWER: "red",
    Change.LOST: "red",
}


@click.command("compare")
@click.argument("before")
@click.argument("after")
@json_option
@target_options
def compare_command(before: str, after: str, as_json: bool, **targets: Any) -> int:
    """Compare two suites of the same tasks: what changed, and whether it is more than noise.

    The ratio of a task is its speed-up over the fastest baseline in AFTER divided by that in
    BEFORE. With one run of a task on each side, its interval covers only the noise of measuring;
    another search may find another kernel. Use --repeats of `suite run` to cover that, too.
    Intervals over all tasks resample tasks.

    BEFORE and AFTER may also be --out folders of `suite judge`.

    \b
    kfoundry suite compare monday tuesday
    kfoundry suite compare theirs level1
    """  # noqa: D301  a backspace keeps click from joining the lines
    (old, old_results), (new, new_results) = open_results([before, after], **targets)
    found = compare(old.plan.name, old_results, new.plan.name, new_results)
    if as_json:
        print_json(to_plain(found))
    else:
        _show(found, is_single=min(old.plan.repeats, new.plan.repeats) == 1)
    return 0


def _show(found: SuiteComparison, *, is_single: bool) -> None:
    table = plain_table(whole("task"), "change", "speed-up, after over before")
    for task in found.tasks:
        change = task.change.value + ("" if task.same_task else " (the task differs)")
        table.add_row(
            one_line(task.task), change, ratio_text(task.ratio), style=_STYLES.get(task.change, "")
        )
    PrintableConsole().print(table)
    print_text(
        f"{found.after} against {found.before}, {counted(len(found.tasks), 'task')} that both have:"
    )
    print_text(f"  speed-up {ratio_text(found.ratio)}: {noise_text(found.ratio, 1.0)}")
    print_text(f"  fast_1 {difference_text(found.fast_1)}: {noise_text(found.fast_1, 0.0)}")
    print_text(
        f"  solved {difference_text(found.correctness)}: {noise_text(found.correctness, 0.0)}"
    )
    counts = ", ".join(f"{found.count(c)} {c.value}" for c in Change if found.count(c))
    print_text(f"  {counts}; by chance alone {found.expected_by_chance:.1f} would show a change")
    if is_single:
        print_text("  one run of each task: intervals of tasks hold the noise of measuring alone")
    if found.left_out:
        print_text(one_line(f"  left out: {', '.join(found.left_out)}"))
