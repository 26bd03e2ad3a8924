"""Turns what a servicer raises into a status, so that servicers contain no `try`.

Bytes that are no message get one, too: gRPC itself would answer UNKNOWN and say nothing. So does a
request beyond its bounds, which no servicer sees. Each answer says which version it is of.
"""

import logging
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, NoReturn, TypeAlias

import grpc

from kernel_foundry.errors import InvalidArgumentError, KernelFoundryError
from kernel_foundry.rpc.bounded_reader import MalformedMessage, request_reader
from kernel_foundry.rpc.handler_wrap import is_ours, wrapped
from kernel_foundry.rpc.server_version import version_header
from kernel_foundry.rpc.status import DETAILS_KEY, to_status
from kernel_foundry.wire.bounds import check_bounds

_log = logging.getLogger(__name__)
_GRPC_CODE = {code.value[0]: code for code in grpc.StatusCode}

_Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"


_Method = Callable[[Any, Any], Awaitable[Any]]
_StreamMethod = Callable[[Any, Any], AsyncIterator[Any]]


class ErrorInterceptor(grpc.aio.ServerInterceptor):
    """Maps every exception of methods that take one request; an unknown one is our bug."""

    def __init__(self) -> None:
        self._guarded: dict[str, _Handler] = {}
        """By method; there are as many as the server has."""

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable["_Handler | None"]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> "_Handler | None":
        """Return the method's handler with its errors mapped."""
        handler = await continuation(handler_call_details)
        method = handler_call_details.method
        if handler is not None and method not in self._guarded:
            self._guarded[method] = _guarded_handler(handler, method)
        return self._guarded.get(method)


def _guarded_handler(handler: "_Handler", method: str) -> "_Handler":
    """The handler with its errors mapped, unless it sets its status itself."""
    if handler.unary_unary is None and not _is_ours(handler, method):
        return handler
    unary: Any = handler.unary_unary
    stream: Any = handler.unary_stream  # of an asynchronous server
    return wrapped(
        handler,
        _guarded(unary, method),
        _guarded_stream(stream, method),
        read=_reader(handler, method),
    )


def _is_ours(handler: "_Handler", method: str) -> bool:
    """Whether it is a stream of our own; health's `Watch` sets its status itself."""
    return handler.unary_stream is not None and is_ours(method)


def _reader(handler: "_Handler", method: str) -> Callable[[bytes], Any]:
    assert handler.request_deserializer is not None  # generated code always has one
    return request_reader(handler.request_deserializer, method)


def _check_request(request: Any) -> None:
    if isinstance(request, MalformedMessage):
        raise InvalidArgumentError(
            f"request: its bytes are not a message of this method: {request.reason}",
            field="request",
        )
    check_bounds(request)


def _guarded(method: _Method, name: str) -> _Method:
    async def call(request: Any, context: Any) -> Any:
        context.set_trailing_metadata((version_header(),))
        try:
            _check_request(request)
            return await method(request, context)
        except Exception as error:  # noqa: BLE001 - the process boundary
            await fail(context, error, name)

    return call


def _guarded_stream(method: _StreamMethod, name: str) -> _StreamMethod:
    async def call(request: Any, context: Any) -> AsyncIterator[Any]:
        context.set_trailing_metadata((version_header(),))
        try:
            _check_request(request)
            async for response in method(request, context):
                yield response
        except Exception as error:  # noqa: BLE001 - the process boundary
            await fail(context, error, name)

    return call


async def fail(context: Any, error: Exception, method: str) -> NoReturn:
    """End a call with the status of an error; a bug must not leak its text."""
    if isinstance(error, grpc.aio.AbortError):
        raise error  # a servicer of gRPC's own (health) has set its status
    if isinstance(error, KernelFoundryError):
        await abort(context, error, method)
    bug_id = secrets.token_hex(4)
    _log.error("%s: bug %s", method, bug_id, exc_info=error)
    text = f"internal error {bug_id}; the service's log has the traceback"
    await abort(context, KernelFoundryError(text, id=bug_id), method)


async def abort(context: Any, error: KernelFoundryError, method: str) -> NoReturn:
    """End a call with the status of an error."""
    # "/kernel_foundry.archive.v1.ArchiveService/GetRun" -> "archive"
    status = to_status(error, method.split(".")[1])
    details = ((DETAILS_KEY, status.SerializeToString()), version_header())
    await context.abort(_GRPC_CODE[status.code], status.message, details)
    raise AssertionError("abort raises")
