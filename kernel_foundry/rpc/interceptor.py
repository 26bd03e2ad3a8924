"""Turns what a servicer raises into a status, so that servicers contain no `try`."""

import logging
import secrets
from collections.abc import Awaitable, Callable
from typing import Any, NoReturn, TypeAlias

import grpc

from kernel_foundry.errors import KernelFoundryError
from kernel_foundry.rpc.status import DETAILS_KEY, to_status

_log = logging.getLogger(__name__)
_GRPC_CODE = {code.value[0]: code for code in grpc.StatusCode}

_Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
_Method = Callable[[Any, Any], Awaitable[Any]]


class ErrorInterceptor(grpc.aio.ServerInterceptor):
    """Maps every exception of every unary method; an unknown one is our bug."""

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable["_Handler | None"]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> "_Handler | None":
        """Return the method's handler with its errors mapped."""
        handler = await continuation(handler_call_details)
        if handler is None or handler.unary_unary is None:
            return handler
        return grpc.unary_unary_rpc_method_handler(
            _guarded(handler.unary_unary, handler_call_details.method),
            request_deserializer=handler.request_deserializer,
            response_serializer=handler.response_serializer,
        )


def _guarded(method: _Method, name: str) -> _Method:
    async def call(request: Any, context: Any) -> Any:
        try:
            return await method(request, context)
        except grpc.aio.AbortError:
            raise  # a servicer of gRPC's own (health) has set its status
        except KernelFoundryError as error:
            await _abort(context, error, name)
        except Exception:  # noqa: BLE001 - the process boundary: a bug must not leak its text
            bug_id = secrets.token_hex(4)
            _log.exception("%s: bug %s", name, bug_id)
            text = f"internal error {bug_id}; the service's log has the traceback"
            await _abort(context, KernelFoundryError(text, id=bug_id), name)

    return call


async def _abort(context: Any, error: KernelFoundryError, method: str) -> NoReturn:
    # "/kernel_foundry.archive.v1.ArchiveService/GetRun" -> "archive"
    status = to_status(error, method.split(".")[1])
    details = ((DETAILS_KEY, status.SerializeToString()),)
    await context.abort(_GRPC_CODE[status.code], status.message, details)
    raise AssertionError("abort raises")
