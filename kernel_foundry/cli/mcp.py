"""`kfoundry mcp`: serve the evaluator as a tool for coding agents."""

import contextlib
import os
import secrets
import sys
from pathlib import Path
from typing import Any, Final

import click

from kernel_foundry.cli.options import target_options
from kernel_foundry.cli.output import exact_stream, print_text
from kernel_foundry.errors import PackageMissingError
from kernel_foundry.sdk.services import Targets


@click.command()
@click.option(
    "--root",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    default=".",
    help="Files are read and written only below this folder.  [default: the current folder]",
)
@click.option(
    "--evaluations",
    type=click.IntRange(min=1),
    default=1000,
    show_default=True,
    help="Most builds and evaluations of each caller.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=14400.0,
    show_default=True,
    help="Most seconds of work of each caller.",
)
@click.option(
    "--usd",
    type=click.FloatRange(min=0),
    default=0.0,
    show_default=True,
    help="Most that runs of each caller may pay models; with 0 they ask recipes alone.",
)
@click.option(
    "--http",
    "port",
    type=click.IntRange(min=0, max=65535),
    help="Serve streamable HTTP on this port of this machine; 0: any that is free. Callers send "
    "$KERNEL_FOUNDRY_MCP_TOKEN, or one of several that stand there with blanks between them, or "
    "the token that is printed.  [default: stdin and stdout]",
)
@target_options
def command(
    root: Path,
    evaluations: int,
    seconds: float,
    usd: float,
    port: int | None,
    **targets: Any,
) -> int:
    """Serve the Model Context Protocol on standard input and output, until its client leaves.

    Its tools judge and sweep candidates, explain findings, search lessons, run searches, verify
    records and export winners. A coding agent starts this command itself; docs/agents.md has the
    lines for its configuration, and `kfoundry skills install` explains the work to it. Over HTTP
    each token is one caller, however often it connects. Needs kernel-foundry[agents].

    \b
    kfoundry mcp --root examples --evaluations 200
    kfoundry mcp --root examples --http 8322
    """  # noqa: D301  a backspace keeps click from joining the lines
    try:
        from kernel_foundry.mcp_server.allowance import Allowances
        from kernel_foundry.mcp_server.server import make_server
    except ModuleNotFoundError as error:
        raise PackageMissingError(
            f"the server needs the MCP SDK: install kernel-foundry[agents] ({error})",
            package="mcp",
        ) from error
    allowances = Allowances(evaluations=evaluations, seconds=seconds, usd=usd)
    server: Any = make_server(root, Targets(**targets), allowances)
    if port is not None:
        _serve_http(server, port)
        return 0
    # The protocol is JSON, to the byte, and the SDK writes below text.
    sys.stdout = exact_stream(sys.stdout)
    server.run("stdio")
    return 0


def _serve_http(server: Any, port: int) -> None:
    from kernel_foundry.mcp_server.http import serve_http

    given = os.environ.get(_TOKEN, "").split()
    if any(len(token) < _SHORTEST_TOKEN for token in given):
        raise click.UsageError(f"a token of ${_TOKEN} has fewer than {_SHORTEST_TOKEN} characters")
    tokens = given or [secrets.token_urlsafe(32)]

    def say(address: str) -> None:
        print_text(address)
        print_text(f"Authorization: Bearer {f'${_TOKEN}' if given else tokens[0]}")

    with contextlib.suppress(KeyboardInterrupt):  # how it is meant to end
        serve_http(server, port, tokens, say)


_TOKEN: Final = "KERNEL_FOUNDRY_MCP_TOKEN"
_SHORTEST_TOKEN: Final = 16
"""Characters of a token that a user chooses."""
