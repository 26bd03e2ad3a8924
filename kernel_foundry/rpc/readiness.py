"""Waits for a service to come up, by its health."""

import asyncio

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from kernel_foundry.errors import ServiceUnavailableError
from kernel_foundry.rpc.connection import CLIENT_OPTIONS
from kernel_foundry.rpc.security import ClientSecurity


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


def _not_serving(target: str, timeout_s: float) -> ServiceUnavailableError:
    return ServiceUnavailableError(f"{target}: not serving within {timeout_s:g} s", target=target)
