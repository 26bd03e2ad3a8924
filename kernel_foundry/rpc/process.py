"""A service as a process of its own: logging, the event loop, and how it ends."""

import asyncio
import contextlib
import functools
import logging
import os
import resource
import signal
import sys
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import click

from kernel_foundry.errors import KernelFoundryError, StatusCode
from kernel_foundry.printable import print_safely
from kernel_foundry.rpc.hard_end import end_process_in
from kernel_foundry.rpc.log_lines import log_formatter
from kernel_foundry.rpc.metrics import serve_metrics
from kernel_foundry.rpc.security import ServerSecurity
from kernel_foundry.scratch import remove_leftovers
from kernel_foundry.tracing import begin_tracing

T = TypeVar("T")

_BAD_INPUT = 2
_MISSING_PART = 3
_MOST_OPEN_FILES = 1 << 16
_ABANDONED_SECONDS = 5.0
"""For an end in order once nobody waits for an answer any more."""


def child_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --end-with-input: for whoever starts the service as a child, over a pipe.

    The pipe's end comes however the parent dies, and whichever thread of it started the child.
    """
    return click.option(
        "--end-with-input",
        is_flag=True,
        expose_value=False,
        callback=lambda _context, _parameter, is_given: _end_with_input() if is_given else None,
        is_eager=True,
        help="End when standard input ends: with the process that holds its other end.",
    )(command)


def listen_option(default_port: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that adds --listen, by default a port of localhost."""
    return click.option(
        "--listen",
        default=f"localhost:{default_port}",
        show_default=True,
        metavar="ADDRESS",
        help="HOST:PORT or unix:/PATH; port 0 takes a free one.",
    )


def service_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of every service.

    They say who may connect, and whether calls are counted; the command gets `security` and
    `metrics`.
    """

    @functools.wraps(command)
    def secured(
        tls_cert: Path | None,
        tls_key: Path | None,
        tls_client_ca: Path | None,
        tokens: Path | None,
        usage: Path | None,
        audit_log: Path | None,
        insecure: bool,
        metrics: str,
        **rest: Any,
    ) -> Any:
        security = ServerSecurity(
            certificate=tls_cert,
            key=tls_key,
            client_ca=tls_client_ca,
            tokens=tokens,
            usage=usage,
            audit_log=audit_log,
            insecure=insecure,
        )
        return command(
            security=security,
            metrics=_ending(lambda: serve_metrics(metrics, security)) if metrics else None,
            **rest,
        )

    def file(name: str, help_text: str) -> Callable[..., Any]:
        variable = f"KERNEL_FOUNDRY_{name.upper().replace('-', '_')}"
        kind = click.Path(dir_okay=False, path_type=Path)
        return click.option(f"--{name}", type=kind, envvar=variable, help=help_text)

    insecure = click.option(
        "--insecure",
        is_flag=True,  # and no variable: that of clients would open services as well
        help="Serve anybody who reaches the address, inside a network that you trust.",
    )
    options = (
        file("tls-cert", "Certificate of the service, with its chain; PEM."),
        file("tls-key", "Its key; PEM."),
        file("tls-client-ca", "Clients show a certificate that this authority signed; PEM."),
        file("tokens", "File of `kfoundry token`; calls over TCP show one of its tokens."),
        file("usage", "File of what users have used of quotas.  [default: beside --tokens]"),
        file("audit-log", "File that gets a JSON line for each call."),
        insecure,
        click.option(
            "--metrics",
            default="",
            metavar="HOST:PORT",
            help="Answer Prometheus there; needs the extra `observability`.",
        ),
    )
    made: Callable[..., Any] = secured
    for option in reversed(options):
        made = option(made)
    return made


def _end_with_input() -> None:
    threading.Thread(target=_watch_input, name="parent-watch", daemon=True).start()


def _watch_input() -> None:
    with contextlib.suppress(OSError):
        while os.read(sys.stdin.fileno(), 4096):
            pass
    os.kill(os.getpid(), signal.SIGTERM)
    end_process_in(_ABANDONED_SECONDS, status=1)


def run(serving: Coroutine[Any, Any, None], service: str) -> None:
    """Run `serving` to its end; our own failure ends the process with its message.

    The exit status is 2 for a wrong argument and 3 for something that is missing here.

    Args:
        serving: The service's life.
        service: Its name in traces.
    """
    print_safely()
    _raise_open_files()
    handler = logging.StreamHandler()
    handler.setFormatter(_ending(log_formatter))
    logging.basicConfig(handlers=[handler])
    for name in ("kernel_foundry", f"{service}_svc"):
        logging.getLogger(name).setLevel(logging.INFO)
    remove_leftovers()
    _ending(lambda: begin_tracing(service))
    _ending(lambda: asyncio.run(serving))


def _raise_open_files() -> None:
    """Allow as many open files as this user may have: each connection is one.

    Shells often allow 1024, which as many silent clients would use up.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST_OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_OPEN_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _ending(work: Callable[[], T]) -> T:
    """Return the result of `work`; an error of ours ends the process with its message."""
    try:
        return work()
    except KernelFoundryError as error:
        sys.stderr.write(f"error: {error.message}\n")
        is_bad_input = error.code is StatusCode.INVALID_ARGUMENT
        sys.exit(_BAD_INPUT if is_bad_input else _MISSING_PART)
