"""Methods of our services where another server carries the calls, such as Ray Serve's ingress.

Requests and answers are bytes here, so that they are read and bounded as by a server of ours, and
each call passes the same guards. How a call ended stands in its context.
"""

import functools
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol, TypeAlias

import grpc
from google.protobuf.descriptor import ServiceDescriptor

from kernel_foundry.errors import InvalidArgumentError, ServiceUnavailableError
from kernel_foundry.rpc.connection import APPLICATION_KEY
from kernel_foundry.rpc.interceptor import abort
from kernel_foundry.rpc.limits import MESSAGE_LIMIT_BYTES
from kernel_foundry.rpc.server import Service

_Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
_Find: TypeAlias = "Callable[[grpc.HandlerCallDetails], Awaitable[_Handler | None]]"
_Metadata: TypeAlias = Sequence[tuple[str, str | bytes]]


class CallContext(Protocol):
    """A carrier's context: the metadata of a call, and how it ended."""

    def invocation_metadata(self) -> Any:
        """Return pairs of key and value."""

    def peer(self) -> str:
        """Return the address that the call came from."""

    def code(self) -> Any:
        """Return the status code that was set."""

    def set_code(self, code: grpc.StatusCode) -> None:
        """Set the status code."""

    def set_details(self, details: str) -> None:
        """Set the status message."""

    def set_trailing_metadata(self, trailing_metadata: Any) -> None:
        """Set what follows the answer."""


class CarriedService:
    """One service behind a carrier; belongs to one event loop.

    Args:
        service: The service; whoever makes this calls its `prepare` and `close`.
        interceptors: What each call passes, in this order.
        application: What its carrier calls it; calls for another one are refused. Ray Serve hands
            all calls to an application that is the only one left. "" takes all.
    """

    def __init__(
        self,
        service: Service,
        interceptors: Sequence[grpc.aio.ServerInterceptor],
        application: str = "",
    ) -> None:
        self._application = application
        methods = _Methods()
        service.register(methods)  # type: ignore[arg-type]  # it uses no more of a server
        self._path = f"/{service.name}/"
        find: _Find = methods.find
        for interceptor in reversed(interceptors):
            find = functools.partial(interceptor.intercept_service, find)
        self._find = find

    async def answer(self, method: str, request: bytes, context: CallContext) -> bytes:
        """Return the answer of a method; nothing where the call failed.

        Args:
            method: Its name, without its service.
            request: The message.
            context: Gets the status of a call that failed.
        """
        last = b""
        async with aclosing(self._answered(method, request, context)) as answers:
            async for answer in answers:
                last = answer
        return last

    async def answers(
        self, method: str, request: bytes, context: CallContext
    ) -> AsyncGenerator[bytes, None]:
        """Yield the answers of a method that streams.

        A carrier takes the context along with an answer. So one that is empty follows where the
        call failed, and carries the status.
        """
        async with aclosing(self._answered(method, request, context)) as answers:
            async for answer in answers:
                yield answer

    async def _answered(
        self, method: str, request: bytes, context: CallContext
    ) -> AsyncGenerator[bytes, None]:
        carried = _Context(context)
        path = self._path + method
        details = _CallDetails(path, tuple(context.invocation_metadata()))
        try:
            asked = dict(details.invocation_metadata).get(APPLICATION_KEY)
            if asked and self._application and asked != self._application:
                await abort(carried, _other_application(str(asked)), path)
            handler = await self._find(details)  # type: ignore[arg-type]  # it has no constructor
            if handler is None:
                await carried.abort(grpc.StatusCode.UNIMPLEMENTED, f"there is no method {method}")
            if len(request) > MESSAGE_LIMIT_BYTES:
                await abort(carried, _too_long(request), path)
            async with aclosing(_handled(handler, request, carried)) as answers:
                async for answer in answers:
                    yield answer
        except grpc.aio.AbortError:
            yield b""


async def _handled(
    handler: Any, request: bytes, context: "_Context"
) -> AsyncGenerator[bytes, None]:
    if handler.unary_unary is not None:
        answer = await handler.unary_unary(handler.request_deserializer(request), context)
        yield handler.response_serializer(answer)
    elif handler.unary_stream is not None:
        taken = handler.request_deserializer(request)
        async with aclosing(handler.unary_stream(taken, context)) as answers:
            async for answer in answers:
                yield handler.response_serializer(answer)
    else:  # a stream of requests is what refuses a call, and reads none
        async for _ in handler.stream_stream(None, context):
            yield b""


def _other_application(asked: str) -> ServiceUnavailableError:
    return ServiceUnavailableError(
        f"there is no application {asked} here now: it went down, or is about to come up",
        target=asked,
    )


def _too_long(request: bytes) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"request: {len(request)} bytes, expected at most {MESSAGE_LIMIT_BYTES}", field="request"
    )


def add_raw_methods(service: ServiceDescriptor, servicer: Any, server: Any) -> None:
    """Register a service with a carrier's server, so that its messages stay bytes there.

    Args:
        service: Its descriptor.
        servicer: Has a function for each method.
        server: The carrier's, with the methods of `grpc.aio.Server` that register others.
    """
    handlers: dict[str, _Handler] = {}
    for method in service.methods:
        make = (
            grpc.unary_stream_rpc_method_handler
            if method.server_streaming
            else grpc.unary_unary_rpc_method_handler
        )
        handlers[method.name] = make(getattr(servicer, method.name))
    name = service.full_name
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(name, handlers),))
    server.add_registered_method_handlers(name, handlers)


class _Methods:
    """Collects the methods that generated code registers, in place of a server."""

    def __init__(self) -> None:
        self._handlers: dict[str, _Handler] = {}

    def add_generic_rpc_handlers(self, _handlers: object) -> None:
        """Do nothing: the same methods are registered by name."""

    def add_registered_method_handlers(
        self, service: str, handlers: Mapping[str, "_Handler"]
    ) -> None:
        self._handlers |= {f"/{service}/{name}": handler for name, handler in handlers.items()}

    async def find(self, details: grpc.HandlerCallDetails) -> "_Handler | None":
        return self._handlers.get(details.method)


@dataclass(frozen=True, slots=True)
class _CallDetails:
    """The details of a call for interceptors."""

    method: str
    invocation_metadata: _Metadata


class _Context:
    """A carrier's context as our handlers use one."""

    def __init__(self, context: CallContext) -> None:
        self._context = context
        self.code = context.code
        self.peer = context.peer
        self.invocation_metadata = context.invocation_metadata

    def set_trailing_metadata(self, trailing_metadata: _Metadata) -> None:
        """Have the answer carry metadata; Ray's context takes a list."""
        self._context.set_trailing_metadata(list(trailing_metadata))

    async def abort(
        self, code: grpc.StatusCode, details: str = "", trailing_metadata: _Metadata = ()
    ) -> NoReturn:
        """End the call with a status."""
        self._context.set_code(code)
        self._context.set_details(details)
        self._context.set_trailing_metadata(list(trailing_metadata))
        raise grpc.aio.AbortError
