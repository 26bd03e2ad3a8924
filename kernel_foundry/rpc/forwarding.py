"""Services that hand their calls on to another server, as they are.

Messages stay bytes; deadlines, cancellation, metadata, and how a call ended with its details pass.
"""

import asyncio
from collections.abc import AsyncIterator, Collection, Iterable
from contextlib import aclosing
from typing import Any, Final, TypeAlias

import grpc
from google.protobuf.descriptor import ServiceDescriptor

from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.rpc.draining import until_set
from kernel_foundry.rpc.interceptor import fail
from kernel_foundry.rpc.server import Service

_Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"

_OWN_HEADERS: Final = ("user-agent", "grpc-")
"""How keys begin that each connection sets by itself."""


def forwarding_service(
    service: ServiceDescriptor,
    channel: grpc.aio.Channel,
    more: Iterable[str] = (),
    *,
    endless: Collection[str] = (),
) -> Service:
    """Return a service whose calls are made again on a channel.

    Args:
        service: Its descriptor.
        channel: Where calls go; closed with the service.
        more: Paths of other methods with one request, such as "/package.Service/Method".
        endless: Names of methods that go on as long as their callers stay: they end when the
            server stops, and the others finish.
    """
    draining = asyncio.Event()
    paths = [f"/{service.full_name}/{method.name}" for method in service.methods]

    def register(server: grpc.aio.Server) -> None:
        for path in (*paths, *more):
            _, name, method = path.split("/")
            stop = draining if method in endless else None
            handlers = {method: _forwarding(channel, path, stop)}
            server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(name, handlers),))
            server.add_registered_method_handlers(name, handlers)

    async def prepare() -> None:
        """Do nothing: a server that is away is UNAVAILABLE to its own callers alone."""

    async def close() -> None:
        await channel.close()

    return Service(
        name=service.full_name,
        register=register,
        prepare=prepare,
        close=close,
        drain=draining.set,
        is_forwarded=True,
    )


def _forwarding(channel: grpc.aio.Channel, path: str, stop: asyncio.Event | None) -> "_Handler":
    """A handler for a method with one request and any number of answers.

    As a stream of requests: so guards refuse a call before its request is received. It ends when
    `stop` is set, if there is one.
    """
    method: Any = channel.unary_stream(path)

    async def forward(requests: Any, context: Any) -> AsyncIterator[bytes]:
        try:
            request = await anext(aiter(requests), None)
            if request is None:
                raise InvalidArgumentError("no request", field="request")  # noqa: TRY301
            metadata = tuple(
                (key, value)
                for key, value in context.invocation_metadata() or ()
                if not key.startswith(_OWN_HEADERS)
            )
            call = method(request, timeout=context.time_remaining(), metadata=metadata)
            try:
                came = aiter(call)
                async with aclosing(until_set(stop, came) if stop else came) as answers:
                    async for answer in answers:
                        yield answer
                context.set_trailing_metadata(tuple(await call.trailing_metadata()))
            finally:
                call.cancel()  # without effect once it has ended
        except grpc.aio.AioRpcError as error:
            trailing = tuple(error.trailing_metadata() or ())
            await context.abort(error.code(), error.details() or "", trailing)
        except Exception as error:  # noqa: BLE001 - the process boundary
            await fail(context, error, path)

    return grpc.stream_stream_rpc_method_handler(forward)
