"""`kfoundry suite judge`: judge published kernels on a folder of tasks."""

from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import click

from kernel_foundry.cli.console import PrintableConsole
from kernel_foundry.cli.options import (
    device_of,
    device_option,
    json_option,
    open_foundry,
    target_options,
)
from kernel_foundry.cli.output import print_json, print_text
from kernel_foundry.cli.suite_export import write_results
from kernel_foundry.cli.suite_show import show_numbers, show_results
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.domain.plain import to_plain
from kernel_foundry.printable import one_line
from kernel_foundry.quantity_text import counted
from kernel_foundry.sdk.report.suite_report import results_page, write_suite_report
from kernel_foundry.sdk.suite.judged_kernels import judge_published, read_tasks
from kernel_foundry.sdk.suite.kept_verdicts import KeptVerdicts
from kernel_foundry.sdk.suite.published_kernels import read_published
from kernel_foundry.sdk.suite.results import EntryResult
from kernel_foundry.sdk.suite.summary import summary_of
from kernel_foundry.sdk.suite.tables import row_of
from kernel_foundry.sdk.verdict_text import evaluation_object, headline_text


@click.command("judge")
@click.argument("tasks", type=click.Path(path_type=Path, exists=True))
@click.argument("kernels", type=click.Path(path_type=Path, exists=True))
@device_option
@click.option(
    "--fresh-baselines", is_flag=True, help="Time baselines in alternation with each kernel."
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write a report, results.csv, results.json and KernelBench's files there; kernels whose "
    "verdicts are there are not judged again.",
)
@json_option
@target_options
def judge_command(
    tasks: Path,
    kernels: Path,
    device: str,
    fresh_baselines: bool,
    out: Path | None,
    as_json: bool,
    **targets: Any,
) -> int:
    """Judge published KERNELS of others on TASKS, a folder of task files.

    KERNELS is a folder of .py and .json files, named like their task or by KernelBench's numbers,
    or JSON Lines with level_id, task_id and custom_code. A task without a kernel counts as not
    solved. Each verdict has trust foreign (docs/foreign.md). Exit code 0 when all passed, else 1.

    With --out each verdict is written to verdicts.jsonl at once, so the same command continues
    after a kill. Remove that file to judge all kernels again.

    \b
    kfoundry suite judge level1 their_kernels --out theirs
    """  # noqa: D301  a backspace keeps click from joining the lines
    known = read_tasks(tasks, admit_degenerate=True)
    published = read_published(kernels)
    device, targets["evaluator"] = device_of(device, targets["evaluator"])
    verdicts: dict[str, Evaluation] = {}

    def listen(result: EntryResult, verdict: Evaluation | None) -> None:
        name, at = result.entry.task.name, result.entry.number + 1
        said = result.entry.progress.reason
        if verdict is not None:
            verdicts[name] = verdict
            if verdict.passed:
                said = headline_text(verdict.speedup, verdict.speedup_interval)
        print_text(one_line(f"[{at}/{len(known)}] {name}: {said}"), err=True)

    with ExitStack() as held:
        kept = None
        if out is not None:
            asked = f"{device} of {targets['evaluator']}"
            asked += ", fresh baselines" if fresh_baselines else ""
            kept = held.enter_context(closing(KeptVerdicts(out, asked)))
        foundry = held.enter_context(open_foundry(**targets))
        results = judge_published(
            known,
            published,
            lambda task, source: foundry.evaluate_foreign(
                task, source, device=device, fresh_baselines=fresh_baselines
            ),
            listen,
            kept,
            None if out is None else lambda task: foundry.admit(task, device=device),
        )
    summary = summary_of(results)
    found = {
        "summary": to_plain(summary),
        "kernels": [to_plain(row_of(result)) for result in results],
        "verdicts": {n: evaluation_object(v, task_name=n) for n, v in verdicts.items()},
    }
    if as_json:
        print_json(found)
    else:
        console = PrintableConsole()
        show_numbers(console, summary)
        show_results(console, results)
    if out is not None:
        write_results(out, results, found)
        path = out / "report.html"
        title = f"{kernels.name} on {tasks.name}"
        heading = f"published kernels, judged with trust foreign · {counted(len(known), 'task')}"
        page = results_page(results, title=title, heading=heading, seconds=summary.seconds)
        write_suite_report(page, path)
        print_text(path)
    return 0 if all(result.verdict is not None for result in results) else 1
