"""Whether a service is up, by its health."""

import asyncio
from dataclasses import dataclass
from typing import Final

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from kernel_foundry.errors import ServiceUnavailableError
from kernel_foundry.rpc.address import check_address
from kernel_foundry.rpc.connection import CLIENT_OPTIONS
from kernel_foundry.rpc.security import ClientSecurity
from kernel_foundry.rpc.server_version import told_version

_AGAIN_SECONDS: Final = 0.05
"""Between two watches, where the connection broke."""


async def wait_until_serving(target: str, *, timeout_s: float) -> None:
    """Return once everything at `target` is SERVING, however long it takes to start.

    Raises:
        ServiceUnavailableError: it did not within `timeout_s`, or its health cannot be asked.
    """
    try:
        async with (
            asyncio.timeout(timeout_s),
            ClientSecurity.from_environment().channel(target, CLIENT_OPTIONS) as channel,
        ):
            stub = health_pb2_grpc.HealthStub(channel)
            while not await _tells_that_it_serves(stub):
                pass
    except TimeoutError as error:
        message = f"{target}: not serving within {timeout_s:g} s"
        raise ServiceUnavailableError(message, target=target) from error
    except grpc.aio.AioRpcError as error:
        message = f"{target}: its health cannot be asked: {error.code().name}: {error.details()}"
        raise ServiceUnavailableError(message, target=target) from error


async def _tells_that_it_serves(stub: health_pb2_grpc.HealthStub) -> bool:
    """Watch the health until it serves; false: the connection broke before.

    It breaks where a service that was killed listened at the same address: channels of one process
    share their connections, and a new one can be given that of the dead.
    """
    watch = stub.Watch(health_pb2.HealthCheckRequest(), wait_for_ready=True)
    try:
        async for answer in watch:
            if answer.status == health_pb2.HealthCheckResponse.SERVING:
                return True
    except grpc.aio.AioRpcError as error:
        if error.code() is not grpc.StatusCode.UNAVAILABLE:
            raise
    await asyncio.sleep(_AGAIN_SECONDS)
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """The readiness of a service."""

    is_serving: bool
    state: str
    """"SERVING", "NOT_SERVING", or why it cannot be asked."""
    version: str = ""
    """The service's; "" where it does not tell."""


async def check_health(
    target: str, security: ClientSecurity, *, timeout_s: float, tls_name: str = ""
) -> Health:
    """Return the health of all that is served at `target`.

    Args:
        target: `host:port` or `unix:/path`.
        security: How the service is known.
        timeout_s: In which it has to answer.
        tls_name: In its certificate; "": the host.

    Raises:
        InvalidArgumentError: that is no address, or a file of TLS cannot be used.
    """
    check_address(target, "TARGET", first_port=1)
    named = (("grpc.ssl_target_name_override", tls_name),) if tls_name else ()
    async with security.channel(target, (*CLIENT_OPTIONS, *named)) as channel:
        call = health_pb2_grpc.HealthStub(channel).Check(
            health_pb2.HealthCheckRequest(), timeout=timeout_s
        )
        try:
            answer = await call
        except grpc.aio.AioRpcError as error:
            return Health(is_serving=False, state=f"{error.code().name}: {error.details()}")
        return Health(
            is_serving=answer.status == health_pb2.HealthCheckResponse.SERVING,
            state=health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status),
            version=told_version(await call.trailing_metadata()),
        )
