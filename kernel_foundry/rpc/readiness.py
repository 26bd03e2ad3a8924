"""Whether a service is up, by its health."""

import asyncio
from dataclasses import dataclass

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from kernel_foundry.errors import ServiceUnavailableError
from kernel_foundry.rpc.address import check_address
from kernel_foundry.rpc.connection import CLIENT_OPTIONS
from kernel_foundry.rpc.security import ClientSecurity
from kernel_foundry.rpc.server_version import told_version


async def wait_until_serving(target: str, *, timeout_s: float) -> None:
    """Return once everything at `target` is SERVING, however long it takes to start.

    Raises:
        ServiceUnavailableError: it did not within `timeout_s`.
    """
    try:
        async with (
            asyncio.timeout(timeout_s),
            ClientSecurity.from_environment().channel(target, CLIENT_OPTIONS) as channel,
        ):
            watch = health_pb2_grpc.HealthStub(channel).Watch(
                health_pb2.HealthCheckRequest(), wait_for_ready=True
            )
            async for answer in watch:
                if answer.status == health_pb2.HealthCheckResponse.SERVING:
                    return
    except (TimeoutError, grpc.aio.AioRpcError) as error:
        raise _not_serving(target, timeout_s) from error
    raise _not_serving(target, timeout_s)


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


def _not_serving(target: str, timeout_s: float) -> ServiceUnavailableError:
    return ServiceUnavailableError(f"{target}: not serving within {timeout_s:g} s", target=target)
