"""`kfoundry mcp`: the evaluator as the tool of a coding agent."""

import sys
from pathlib import Path
from typing import Any

import click

from kernel_foundry.cli.options import target_options
from kernel_foundry.cli.output import exact_stream
from kernel_foundry.errors import PackageMissingError
from kernel_foundry.sdk.services import Targets


@click.command()
@click.option(
    "--root",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    default=".",
    help="Folder that task files are read from; no other file is.  [default: the current folder]",
)
@click.option(
    "--evaluations",
    type=click.IntRange(min=1),
    default=1000,
    show_default=True,
    help="Most builds and evaluations of this connection.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=14400.0,
    show_default=True,
    help="Most seconds of work of this connection.",
)
@target_options
def command(
    root: Path,
    evaluations: int,
    seconds: float,
    evaluator_target: str,
    archive_target: str,
    generator_target: str,
    store: str,
    unsafe_no_sandbox: bool,
) -> int:
    """Serve the Model Context Protocol on standard input and output, until its client leaves.

    Tools: devices, admit, build, evaluate, search_lessons. A coding agent starts this command
    itself; docs/agents.md has the lines for its configuration. Needs kernel-foundry[agents].

    \b
    kfoundry mcp --root examples --evaluations 200
    """  # noqa: D301  a backspace keeps click from joining the lines
    try:
        from kernel_foundry.mcp_server.allowance import Allowance
        from kernel_foundry.mcp_server.server import make_server
    except ModuleNotFoundError as error:
        raise PackageMissingError(
            f"the server needs the MCP SDK: install kernel-foundry[agents] ({error})",
            package="mcp",
        ) from error
    targets = Targets(
        evaluator=evaluator_target,
        archive=archive_target,
        generator=generator_target,
        store=store,
        unsafe_no_sandbox=unsafe_no_sandbox,
    )
    allowance = Allowance(evaluations=evaluations, seconds=seconds)
    server: Any = make_server(root, targets, allowance)
    # The protocol is JSON, to the byte, and the SDK writes below text.
    sys.stdout = exact_stream(sys.stdout)
    server.run("stdio")
    return 0
