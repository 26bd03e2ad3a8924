"""Serves implementations of the ports: health, reflection, readiness and graceful stop.

Each service comes as a `Service`. Who may connect: `security.py`, `access.py`.
"""

import asyncio
import logging
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from kernel_foundry.errors import ServiceUnavailableError
from kernel_foundry.rpc.address import check_address, check_not_in_use, why_not_bound
from kernel_foundry.rpc.guards import Guards
from kernel_foundry.rpc.hard_end import end_process_in
from kernel_foundry.rpc.limits import CHANNEL_OPTIONS
from kernel_foundry.rpc.metrics import Metrics
from kernel_foundry.rpc.security import ServerSecurity, is_unix

_log = logging.getLogger(__name__)

_UNIX_PREFIX = "unix:"
_HANDSHAKE = ("grpc.server_handshake_timeout_ms", 10_000)
"""A client that connects and says nothing is gone after this."""
_STOPPING = "stopping: calls in flight: %d, which have up to %g s"
NO_SECURITY = ServerSecurity()
"""Enough for UNIX sockets and loopback; any other address is refused."""

GRACE_S = 10.0
"""How long calls in flight may take to finish once a service is told to stop."""

CLOSE_S = 5.0
"""How long a service may then take to end what it started and to close its files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """One gRPC service and the life of what it serves."""

    name: str
    """Full name, such as "kernel_foundry.archive.v1.ArchiveService"."""
    register: Callable[[grpc.aio.Server], None]
    """Adds the servicer to a server."""
    prepare: Callable[[], Awaitable[object]]
    """Work to do before the service reports SERVING."""
    close: Callable[[], Awaitable[None]]
    """Releases what is served, once no call is left."""
    drain: Callable[[], None] = lambda: None
    """Ends calls that would go on as long as their callers stay; the others finish."""
    is_forwarded: bool = False
    """Its calls go on as bytes to a service that holds users to their quotas."""


async def serve(
    services: Sequence[Service],
    listen: str,
    *,
    grace_s: float = GRACE_S,
    security: ServerSecurity = NO_SECURITY,
    metrics: Metrics | None = None,
) -> None:
    """Serve `services` at `listen` until SIGTERM or SIGINT, then stop gracefully.

    The process ends `grace_s` and a few seconds later, whatever is in progress then.

    Raises as `running`.
    """
    stop = asyncio.Event()
    task = asyncio.current_task()
    assert task is not None  # a coroutine runs in one

    def on_signal() -> None:
        if not stop.is_set():
            stop.set()
            task.cancel()  # also ends a `prepare` that takes long
            # Candidates that nobody waits for any more may take as long as their callers allowed.
            end_process_in(grace_s + CLOSE_S, status=0)

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal)
    try:
        async with running(
            services, listen, grace_s=grace_s, security=security, metrics=metrics
        ) as target:
            _log.info("serving %s at %s", ", ".join(s.name for s in services), target)
            await stop.wait()
    except asyncio.CancelledError:
        if not stop.is_set():
            raise
        _log.info("stopped")


@asynccontextmanager
async def running(
    services: Sequence[Service],
    listen: str,
    *,
    grace_s: float = GRACE_S,
    security: ServerSecurity = NO_SECURITY,
    metrics: Metrics | None = None,
) -> AsyncIterator[str]:
    """Run a server for `services`; yield its target once they are SERVING.

    Args:
        services: What to serve, all on one address.
        listen: `unix:/path` or `host:port`; port 0 takes a free one.
        grace_s: How long calls in flight may take to finish at the end.
        security: Who may connect.
        metrics: Counts calls; None: nobody does.

    Raises:
        ServiceUnavailableError: the address cannot be bound.
        InvalidArgumentError: it is no address, it needs more security than is given, or a file
            cannot be read.
    """
    check_address(listen, "--listen")
    credentials = security.credentials(listen)
    guards = Guards(
        security,
        asks_for_tokens=not is_unix(listen),
        is_encrypted=credentials is not None,
        keeps_quotas=not all(service.is_forwarded for service in services),
        metrics=metrics,
    )
    server = grpc.aio.server(
        interceptors=guards.interceptors,
        # Without the second option two servers share a port and each gets half of the calls.
        options=(*CHANNEL_OPTIONS, ("grpc.so_reuseport", 0), _HANDSHAKE),
    )
    names = [service.name for service in services]
    checks = await _add_standard_services(server, names)
    async with AsyncExitStack() as at_end:  # runs in reverse order
        at_end.callback(guards.close)
        for service in services:
            service.register(server)
            at_end.push_async_callback(service.close)
        at_end.push_async_callback(server.stop, grace_s)
        for service in services:
            at_end.callback(service.drain)
        at_end.push_async_callback(checks.enter_graceful_shutdown)
        at_end.callback(lambda: _log.info(_STOPPING, guards.in_flight, grace_s))
        target = _bind(server, listen, credentials)
        await server.start()
        _log.info("listening at %s; getting ready", target)
        for service in services:
            await service.prepare()
        for name in (*names, health.OVERALL_HEALTH):
            await checks.set(name, health_pb2.HealthCheckResponse.SERVING)
        yield target


async def _add_standard_services(
    server: grpc.aio.Server, names: Sequence[str]
) -> health.aio.HealthServicer:
    """Add health, with everything NOT_SERVING yet, and reflection."""
    checks = health.aio.HealthServicer()
    for name in (*names, health.OVERALL_HEALTH):
        await checks.set(name, health_pb2.HealthCheckResponse.NOT_SERVING)
    health_pb2_grpc.add_HealthServicer_to_server(checks, server)
    reflection.enable_server_reflection(
        (*names, health.SERVICE_NAME, reflection.SERVICE_NAME), server
    )
    return checks


def _bind(server: grpc.aio.Server, listen: str, credentials: grpc.ServerCredentials | None) -> str:
    check_not_in_use(listen)
    try:
        if credentials is None:
            port = server.add_insecure_port(listen)
        else:
            port = server.add_secure_port(listen, credentials)
    except RuntimeError as error:
        raise ServiceUnavailableError(
            f"cannot listen on {listen}: {why_not_bound(listen) or error}", target=listen
        ) from error
    if listen.startswith(_UNIX_PREFIX):
        # A task's reference is run as Python: whoever may connect may run code as this user.
        Path(listen.removeprefix(_UNIX_PREFIX)).chmod(0o600)
        return listen
    return f"{listen.rpartition(':')[0]}:{port}"
