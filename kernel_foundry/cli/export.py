"""`kfoundry export`: a run's winner as a file or folder for the user's own program."""

from pathlib import Path
from typing import Any

import click

from kernel_foundry.cli.console import PrintableConsole
from kernel_foundry.cli.options import json_option, open_foundry, target_options
from kernel_foundry.cli.output import print_json, print_text
from kernel_foundry.cli.table import numbers, plain_table
from kernel_foundry.cli.winning_run import run_with_winner
from kernel_foundry.domain.name import file_stem
from kernel_foundry.domain.plain import to_plain
from kernel_foundry.errors import ExportRefusedError, InvalidArgumentError
from kernel_foundry.printable import one_line
from kernel_foundry.sdk.export.destination import check_destination
from kernel_foundry.sdk.export.export import ExportResult, export_runs, slow_graphs, write_exported
from kernel_foundry.sdk.export.targets import TARGETS
from kernel_foundry.sdk.verdict_text import duration, headline_text


@click.command()
@click.argument("runs", nargs=-1)
@click.option(
    "--to",
    "target",
    type=click.Choice(list(TARGETS)),
    default="torch",
    show_default=True,
    help="; ".join(f"{name}: {target.summary}" for name, target in TARGETS.items()) + ".",
)
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    help="File or folder to write.  [default: fast_TASK.py here, or as the target has it]",
)
@click.option(
    "--backward",
    multiple=True,
    metavar="RUN",
    help="Run of the gradient's task (`backward` in its sidecar): its kernels compute gradients.",
)
@click.option(
    "--problem",
    default="",
    metavar="NAME",
    help="Leaderboard or definition that it solves there.  [default: the task's name]",
)
@click.option(
    "--replace",
    is_flag=True,
    help="Replace any existing file; by default only an export of the same task is replaced.",
)
@json_option
@target_options
def command(
    runs: tuple[str, ...],
    target: str,
    out: Path | None,
    backward: tuple[str, ...],
    problem: str,
    replace: bool,
    as_json: bool,
    **targets: Any,
) -> int:
    """Write the winner of RUN as one file or a folder that does not need this package.

    RUN defaults to the newest run with a correct kernel. Several runs of one task make one file;
    each call uses the kernels of the first run that was judged on such sizes. Before the file is
    written, it is run in a fresh, sandboxed process against its reference, on all workloads,
    including held-out ones. Exit code 1 if it is wrong there, or more than 5 % slower than the
    verdict. An existing export of this task is replaced.

    \b
    kfoundry export
    kfoundry export softmax-large softmax-small -o fast_softmax.py
    kfoundry export softmax --backward softmax-gradient
    kfoundry export --to kernelbench -o level_1_problem_23_sample_0_kernel.py
    kfoundry export --to cpp -o fast_softmax
    kfoundry verify fast_softmax.py
    """  # noqa: D301  a backspace keeps click from joining the lines
    with open_foundry(**targets) as foundry:
        found = [run_with_winner(foundry, run) for run in (*(runs or ("",)), *backward)]
        chosen = tuple(run.spec.name for run in found[: max(len(runs), 1)])
        task = found[0].spec.task.name
        form = TARGETS[target]
        path = out or Path(form.file.format(task=file_stem(task)))
        if out is None and path.is_symlink():
            raise InvalidArgumentError(f"{path} is a link: name the file with --out", field="out")
        check_destination(
            path,
            [run.spec.task for run in found],
            is_folder=form.folder is not None,
            replaces=replace,
        )
        try:
            exported = export_runs(
                foundry,
                chosen,
                backward=backward,
                module=path.stem,
                target=target,
                problem=problem,
            )
        except ExportRefusedError as error:
            print_text(f"error: {error}", err=True)
            return 1
    write_exported(exported, path)
    for run in found:
        if (run.best_speedup_interval or (0.0,))[0] <= 1.0:
            gain = headline_text(run.best_speedup, run.best_speedup_interval)
            print_text(f"warning: the winner of {run.spec.name} has {gain}", err=True)
    for left in exported.left_out:
        print_text(f"warning: {one_line(left.name)} is left out: {left.reason}", err=True)
    for warning in slow_graphs(exported):
        print_text(f"warning: {warning}", err=True)
    if as_json:
        print_json({"file": str(path), "task": task, **_object(exported)})
    else:
        _show(exported)
        names = ", ".join(run.spec.name for run in found)
        print_text(f"{path}: {form.summary}; task {one_line(task)}, run {names}")
    return 0


def _object(exported: ExportResult) -> dict[str, Any]:
    return {
        "workloads": [to_plain(workload) for workload in exported.workloads],
        "backward": [to_plain(workload) for workload in exported.backward],
        "left_out": [to_plain(left) for left in exported.left_out],
        "warnings": list(slow_graphs(exported)),
        "isolation": list(exported.report.mechanisms),
    }


def _show(exported: ExportResult) -> None:
    has_graphs = any(w.result.graph_ns is not None for w in exported.workloads)
    columns = ["verdict, warm", "exported, warm"]
    columns += ["as a CUDA graph"] if has_graphs else []
    table = plain_table("workload", *numbers(*columns, "host time of a call"))
    rows = [(w.result.name, w) for w in exported.workloads]
    rows += [(f"backward, {w.result.name}", w) for w in exported.backward]
    for name, workload in rows:
        result, judged = workload.result, workload.verdict_ns
        if result.kernels_ns is None or judged is None:
            table.add_row(name, "held out", "right")
            continue
        times = [duration(judged[1]), duration(result.kernels_ns[1])]
        if has_graphs:  # there is none of a backward pass
            times.append("" if result.graph_ns is None else duration(result.graph_ns))
        table.add_row(name, *times, duration(result.host_ns))
    PrintableConsole().print(table)
