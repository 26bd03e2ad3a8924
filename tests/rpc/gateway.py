"""A gateway in this process, before a server."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from kernel_foundry.rpc.gateway import gateway_services
from kernel_foundry.rpc.security import ServerSecurity
from kernel_foundry.rpc.server import NO_SECURITY, Service, running

P = TypeVar("P")


@asynccontextmanager
async def gateway_before(
    target: str, *, security: ServerSecurity = NO_SECURITY
) -> AsyncIterator[str]:
    """Yield the address of a gateway before a server, whichever services that has."""
    services = [*gateway_services(ingress=target, archive=target, generator=target)]
    async with running(services, "127.0.0.1:0", grace_s=1.0, security=security) as address:
        yield address


@asynccontextmanager
async def by_gateway(
    implementation: P, service: Callable[[P], Service], connect: Callable[[str], P]
) -> AsyncIterator[P]:
    """Yield the client of a gateway before an implementation's server; whoever has it closes it."""
    async with (
        running([service(implementation)], "127.0.0.1:0", grace_s=1.0) as behind,
        gateway_before(behind) as target,
    ):
        yield connect(target)
