"""`kfoundry serve`: run services for other machines and tools."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import click

_SERVICES = ("evaluator", "archive", "generator")
_PORTS = {"evaluator": 50051, "archive": 50052, "generator": 50053}


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("service", type=click.Choice([*_SERVICES, "all"]))
@click.option(
    "--listen",
    default="",
    metavar="ADDRESS",
    help="unix:/PATH or HOST:PORT; for `all` a folder, which gets one socket for each service. "
    "Default: localhost, ports 50051 (evaluator), 50052 (archive), 50053 (generator).",
)
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
def command(service: str, listen: str, options: tuple[str, ...]) -> int:
    """Run SERVICE until SIGTERM or Ctrl-C, then stop gracefully.

    OPTIONS go to the service; `kfoundry serve evaluator -- --help` lists them. Health and
    reflection are on, so grpcurl and other tools can look around.
    """
    if service != "all":
        arguments = _arguments(service, listen or f"localhost:{_PORTS[service]}", options)
        os.execv(sys.executable, arguments)  # the service gets our signals directly
    if options:
        raise click.UsageError("options belong to one service: start the three separately")
    return _serve_all(listen)


def _arguments(service: str, listen: str, options: tuple[str, ...]) -> list[str]:
    return [sys.executable, "-m", f"{service}_svc", "--listen", listen, *options]


def _serve_all(folder: str) -> int:
    """Run the three as children; when one ends or a signal comes, stop all."""
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
    children = []
    for service in _SERVICES:
        listen = f"unix:{folder}/{service}.sock" if folder else f"localhost:{_PORTS[service]}"
        children.append(subprocess.Popen(_arguments(service, listen, ())))
        click.echo(f"{service}: {listen}", err=True)
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
