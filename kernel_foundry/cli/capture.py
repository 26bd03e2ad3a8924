"""`kfoundry capture`: run a user's program once, and write tasks for its modules."""

from pathlib import Path
from textwrap import shorten
from typing import Any

import click

from kernel_foundry.cli.console import PrintableConsole
from kernel_foundry.cli.name import as_called
from kernel_foundry.cli.options import json_option, open_foundry, target_options
from kernel_foundry.cli.output import print_json, print_text
from kernel_foundry.cli.table import numbers, plain_table
from kernel_foundry.domain.plain import to_plain
from kernel_foundry.printable import one_line
from kernel_foundry.sdk.capture.capture import (
    DEFAULT_CALLS,
    DEFAULT_TASKS,
    Capture,
    CaptureProposal,
    capture_program,
    file_and_class,
)
from kernel_foundry.sdk.verdict_text import duration, share_text

_CALL_COLUMNS = 40


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("program")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("captured"),
    show_default=True,
    help="Folder for the task files; files there are not replaced.",
)
@click.option(
    "--tasks",
    type=click.IntRange(min=0),
    default=DEFAULT_TASKS,
    show_default=True,
    help="Most task files to write.",
)
@click.option(
    "--calls",
    type=click.IntRange(min=1),
    default=DEFAULT_CALLS,
    show_default=True,
    help="How often FILE.py:MODEL is called.",
)
@click.option(
    "--device",
    default="",
    metavar="DEVICE",
    help="Where FILE.py:MODEL runs: cpu, cuda or cuda:1.  [default: the GPU, where there is one]",
)
@json_option
@target_options
def command(
    program: str,
    arguments: tuple[str, ...],
    out: Path,
    tasks: int,
    calls: int,
    device: str,
    as_json: bool,
    **targets: Any,
) -> int:
    """Run PROGRAM once, show which modules take its time, and write tasks for the best ones.

    PROGRAM is a script, which gets the ARGUMENTS, or FILE.py:MODEL, a class that is called with the
    file's get_inputs(). It runs in its own process, with all your permissions and without a
    sandbox: capture only what you would run yourself. Compiled models run in eager mode.

    Options of capture stand before PROGRAM. The exit code and standard output are the program's;
    the table goes to standard error. With --json the program's output goes there.

    Modules with at most ten modules inside are ranked by what a kernel can save at most: share of
    the time × distance from the traffic bound. Where no task can be written, for example because a
    constructor takes a lambda, the table says why.

    \b
    kfoundry capture train.py --epochs 1
    kfoundry capture --out tasks --device cpu model.py:Model
    kfoundry admit tasks/layer_norm.py
    kfoundry optimize tasks/layer_norm.py
    """  # noqa: D301  a backspace keeps click from joining the lines
    file_and_class(program)  # devices are measured, the first time for long
    with open_foundry(**targets) as foundry:
        devices = foundry.capabilities().devices
    capture = capture_program(
        program,
        arguments,
        devices=devices,
        out=out,
        tasks=tasks,
        calls=calls,
        device=device,
        output_to_stderr=as_json,
    )
    if as_json:
        print_json(
            {
                "program": program,
                "exit_code": capture.exit_code,
                "total_ns": capture.total_ns,
                "modules": [_object(proposal) for proposal in capture.proposals],
            }
        )
    else:
        _show(capture, program)
    return capture.exit_code


def _object(proposal: CaptureProposal) -> dict[str, Any]:
    return {
        **to_plain(proposal),
        "total_ns": proposal.module.total_ns,
        "distance": proposal.distance,
        "gain": proposal.gain,
    }


def _show(capture: Capture, program: str) -> None:
    if not capture.proposals:
        print_text(
            f"{program}: no module with at most ten others inside was called; a file with a model"
            " and get_inputs() is captured as FILE.py:MODEL",
            err=True,
        )
        return
    figures = numbers("calls", "a call", "share", "bound", "gain")
    table = plain_table("module", *figures, "task, or why there is none")
    for proposal in capture.proposals:
        module = proposal.module
        count = sum(calls.count for calls in module.calls)
        table.add_row(
            shorten(one_line(module.call), width=_CALL_COLUMNS, placeholder=" …"),
            str(count),
            duration(module.total_ns / count),
            share_text(proposal.share),
            duration(None if proposal.bound_ns is None else proposal.bound_ns / count),
            share_text(proposal.gain),
            proposal.file or one_line(module.reason) or "–",
        )
    console = PrintableConsole(stderr=True)
    console.print(table)
    written = [proposal.file for proposal in capture.proposals if proposal.file]
    if written:
        line = f"to make the first one faster: {as_called(f'optimize {written[0]}')}"
        console.print(line, soft_wrap=True, highlight=False)
