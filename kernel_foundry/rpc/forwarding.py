"""Services that hand their calls on to another server, as they are.

Messages stay bytes; deadlines, cancellation, metadata, and how a call ended with its details pass.
"""

from collections.abc import AsyncIterator, Iterable
from typing import Any, Final, TypeAlias

import grpc
from google.protobuf.descriptor import ServiceDescriptor

from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.rpc.interceptor import abort
from kernel_foundry.rpc.server import Service

_Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"

_OWN_HEADERS: Final = ("user-agent", "grpc-")
"""How keys begin that each connection sets by itself."""


def forwarding_service(
    service: ServiceDescriptor, channel: grpc.aio.Channel, more: Iterable[str] = ()
) -> Service:
    """Return a service whose calls are made again on a channel.

    Args:
        service: Its descriptor.
        channel: Where calls go; closed with the service.
        more: Paths of other methods with one request, such as "/package.Service/Method".
    """
    paths = [f"/{service.full_name}/{method.name}" for method in service.methods]

    def register(server: grpc.aio.Server) -> None:
        for path in (*paths, *more):
            _, name, method = path.split("/")
            handlers = {method: _forwarding(channel, path)}
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
        is_forwarded=True,
    )


def _forwarding(channel: grpc.aio.Channel, path: str) -> "_Handler":
    """A handler for a method with one request and any number of answers.

    As a stream of requests: so guards refuse a call before its request is received.
    """
    method: Any = channel.unary_stream(path)

    async def forward(requests: Any, context: Any) -> AsyncIterator[bytes]:
        request = await anext(aiter(requests), None)
        if request is None:
            await abort(context, InvalidArgumentError("no request", field="request"), path)
        metadata = tuple(
            (key, value)
            for key, value in context.invocation_metadata() or ()
            if not key.startswith(_OWN_HEADERS)
        )
        call = method(request, timeout=context.time_remaining(), metadata=metadata)
        try:
            async for answer in call:
                yield answer
            context.set_trailing_metadata(tuple(await call.trailing_metadata()))
        except grpc.aio.AioRpcError as error:
            trailing = tuple(error.trailing_metadata() or ())
            await context.abort(error.code(), error.details() or "", trailing)
        finally:
            call.cancel()  # without effect once it has ended

    return grpc.stream_stream_rpc_method_handler(forward)
