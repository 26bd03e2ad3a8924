"""`kfoundry serve`: run services for other machines and tools."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import click

from kernel_foundry.cli.output import print_text
from kernel_foundry.rpc.address import LAST_PORT, check_address

_SERVICES = ("evaluator", "archive", "generator")
_FIRST_PORT = 50051
_GATEWAY = "gateway"
_HELP = "--help"
_UNIX = "unix:"


class _ServeCommand(click.Command):
    """Leaves --help to the service, where one is named."""

    def parse_args(self, context: click.Context, arguments: list[str]) -> list[str]:
        """Read the arguments; does not return from a service's --help."""
        service = arguments[0] if arguments else ""
        if service in (*_SERVICES, _GATEWAY) and _HELP in arguments:
            os.execv(sys.executable, _arguments(service, "", (_HELP,)))
        return super().parse_args(context, arguments)


@click.command(cls=_ServeCommand, context_settings={"ignore_unknown_options": True})
@click.argument("service", type=click.Choice([*_SERVICES, "all", _GATEWAY]))
@click.option(
    "--listen",
    default="",
    metavar="ADDRESS",
    help="HOST:PORT or unix:/PATH. For `all`, PORT is the evaluator's and the next two are the "
    "archive's and the generator's; unix:/PATH is a folder, which gets one socket for each.  "
    "[default: localhost, ports 50051 (evaluator), 50052 (archive), 50053 (generator), 50050 "
    "(gateway)]",
)
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
def command(service: str, listen: str, options: tuple[str, ...]) -> int:
    """Run a service until SIGTERM or Ctrl-C, then stop gracefully.

    OPTIONS go to the service; `kfoundry serve evaluator --help` lists them. `all` takes --listen
    alone; set variables such as KERNEL_FOUNDRY_TLS_CERT for all three (docs/access.md). Health
    checks and reflection are on, for grpcurl and other tools. An address that other machines
    reach needs TLS and tokens, or --insecure: docs/access.md.

    \b
    kfoundry serve evaluator
    kfoundry serve evaluator --listen 0.0.0.0:50051 --insecure     in a network that you trust
    kfoundry serve all --listen localhost:50051      ports 50051, 50052, 50053
    kfoundry serve gateway --ingress 127.0.0.1:9000 --archive localhost:50052
    """  # noqa: D301  a backspace keeps click from joining the lines
    if service != "all":
        arguments = _arguments(service, listen, options)
        os.execv(sys.executable, arguments)  # the service gets our signals directly
    if options:
        raise click.UsageError(
            f"`all` takes --listen alone, and not {options[0]}: set its variable"
            " (docs/access.md), or start the three services separately"
        )
    return _serve_all(_addresses(listen))


def _addresses(listen: str) -> dict[str, str]:
    if listen.startswith(_UNIX):
        folder = Path(listen.removeprefix(_UNIX))
        folder.mkdir(parents=True, exist_ok=True)
        return {service: f"{_UNIX}{folder / service}.sock" for service in _SERVICES}
    address = listen or f"localhost:{_FIRST_PORT}"
    # The three services take it and the next two.
    check_address(address, "--listen", first_port=1, last_port=LAST_PORT - len(_SERVICES) + 1)
    host, _, port = address.rpartition(":")
    return {service: f"{host}:{int(port) + i}" for i, service in enumerate(_SERVICES)}


def _arguments(service: str, listen: str, options: tuple[str, ...]) -> list[str]:
    module = "kernel_foundry.rpc.gateway" if service == _GATEWAY else f"{service}_svc"
    where = ("--listen", listen) if listen else ()
    return [sys.executable, "-m", module, *where, *options]


def _serve_all(addresses: dict[str, str]) -> int:
    """Run the three as children; when one ends or a signal comes, stop all."""
    children = []
    for service, address in addresses.items():
        # They end with this process, however that dies: it holds the other end of their input.
        arguments = _arguments(service, address, ("--end-with-input",))
        children.append(subprocess.Popen(arguments, stdin=subprocess.PIPE))
        print_text(f"{service}: {address}", err=True)
    is_stopping = False

    def stop(_number: int, _frame: object) -> None:
        nonlocal is_stopping
        is_stopping = True

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    while not is_stopping and all(child.poll() is None for child in children):
        time.sleep(0.1)
    for child in children:
        child.terminate()
    codes = [child.wait() for child in children]
    return 0 if is_stopping else max(abs(code) for code in codes)
