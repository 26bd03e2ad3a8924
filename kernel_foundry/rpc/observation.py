"""Sees every call of a server: a span of the caller's trace, and figures for Prometheus."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeAlias

import grpc

from kernel_foundry.rpc.handler_wrap import code_name, is_ours, wrapped
from kernel_foundry.rpc.metrics import Metrics
from kernel_foundry.tracing import served

_Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"


class ObservationInterceptor(grpc.aio.ServerInterceptor):
    """Observes calls of our own services, those that are refused as well.

    Args:
        metrics: Counts; None: nobody does.
    """

    def __init__(self, metrics: Metrics | None) -> None:
        self._metrics = metrics

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable["_Handler | None"]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> "_Handler | None":
        """Return the method's handler, observed."""
        handler = await continuation(handler_call_details)
        method = handler_call_details.method
        if handler is None or not is_ours(method):
            return handler
        headers = {
            key: value
            for key, value in handler_call_details.invocation_metadata or ()
            if isinstance(value, str)
        }
        return self._observed(handler, method.rpartition("/")[2], headers)

    def _observed(self, handler: "_Handler", method: str, headers: dict[str, str]) -> "_Handler":
        answering: Any = handler.unary_unary
        # A stream of requests is what refuses a call, whatever its method's kind.
        streaming: Any = handler.unary_stream or handler.stream_stream

        async def unary(request: Any, context: Any) -> Any:
            with served(method, headers), _Call(self._metrics, method, context) as call:
                answer = await answering(request, context)
                call.answered(answer)
                return answer

        async def stream(request: Any, context: Any) -> AsyncIterator[Any]:
            # No span: it would be current in whatever else runs between two answers.
            with _Call(self._metrics, method, context) as call:
                async for answer in streaming(request, context):
                    call.answered(answer)
                    yield answer

        return wrapped(handler, unary, stream)


class _Call:
    """One call, from its begin to its end."""

    def __init__(self, metrics: Metrics | None, method: str, context: Any) -> None:
        self._metrics = metrics
        self._method = method
        self._context = context
        self._began_s = 0.0

    def __enter__(self) -> "_Call":
        self._began_s = time.monotonic()
        if self._metrics is not None:
            self._metrics.began(self._method)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_rest: object) -> None:
        if self._metrics is None:
            return
        if kind is None:
            code = "OK"
        else:
            code = code_name(self._context.code()) if issubclass(kind, Exception) else "CANCELLED"
        self._metrics.ended(self._method, code, time.monotonic() - self._began_s)

    def answered(self, answer: Any) -> None:
        # What is only handed on stays bytes, and is counted where it comes from.
        if self._metrics is not None and not isinstance(answer, bytes):
            self._metrics.answered(self._method, answer)
