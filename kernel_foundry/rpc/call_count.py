"""Counts the calls that a server answers now, for whoever stops it."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeAlias

import grpc

from kernel_foundry.rpc.handler_wrap import is_ours, wrapped

_Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"


class CallCount(grpc.aio.ServerInterceptor):
    """Counts calls of our own services; watching a server's health is none."""

    def __init__(self) -> None:
        self.in_flight = 0

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable["_Handler | None"]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> "_Handler | None":
        """Return the method's handler, counted."""
        handler = await continuation(handler_call_details)
        if handler is None or not is_ours(handler_call_details.method):
            return handler
        return self._counted(handler)

    def _counted(self, handler: "_Handler") -> "_Handler":
        answering: Any = handler.unary_unary
        streaming: Any = handler.unary_stream or handler.stream_stream

        async def unary(request: Any, context: Any) -> Any:
            self.in_flight += 1
            try:
                return await answering(request, context)
            finally:
                self.in_flight -= 1

        async def stream(request: Any, context: Any) -> AsyncIterator[Any]:
            self.in_flight += 1
            try:
                async for answer in streaming(request, context):
                    yield answer
            finally:
                self.in_flight -= 1

        return wrapped(handler, unary, stream)
