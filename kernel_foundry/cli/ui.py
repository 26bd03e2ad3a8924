"""`kfoundry ui`: show runs live in a browser on this machine."""

import asyncio
import contextlib
import webbrowser
from typing import Any

import click

from kernel_foundry.cli.options import target_options
from kernel_foundry.cli.output import print_text
from kernel_foundry.sdk.services import Targets


@click.command()
@click.option(
    "--port",
    type=click.IntRange(min=0, max=65535),
    default=0,
    help="Port of this machine.  [default: any that is free]",
)
@click.option("--open", "opens", is_flag=True, help="Open the page in your browser.")
@target_options
def command(port: int, opens: bool, **targets: Any) -> int:
    """Show runs live in a browser, until Ctrl-C (docs/ui.md).

    Prints the address to open on this machine; it contains a secret of this session. Runs may
    belong to any process on the same store, or be behind --archive.

    \b
    kfoundry ui --open                 open it at once
    kfoundry ui --port 8321            on a GPU host, over `ssh -L 8321:localhost:8321`
    """  # noqa: D301  a backspace keeps click from joining the lines
    with contextlib.suppress(KeyboardInterrupt):  # how it is meant to end
        asyncio.run(_serve(Targets(**targets), port, opens=opens))
    return 0


async def _serve(targets: Targets, port: int, *, opens: bool) -> None:
    from kernel_foundry.ui.server import PageServer

    async with PageServer(targets, port) as server:
        print_text(server.address)
        if opens:
            await asyncio.to_thread(webbrowser.open, server.address)
        await asyncio.Event().wait()
