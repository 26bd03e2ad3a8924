"""Errors to and from `google.rpc.Status`: the only place that maps them.

Never parses a message: class and values travel as `ErrorInfo(reason, domain, metadata)`.
"""

import contextlib
from collections.abc import Callable
from typing import Any

import grpc
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import DecodeError, Message
from google.rpc import error_details_pb2 as details_pb2
from google.rpc.status_pb2 import Status

from kernel_foundry import errors
from kernel_foundry.errors import KernelFoundryError, StatusCode
from kernel_foundry.rpc.limits import ERROR_TEXT_LIMIT

DETAILS_KEY = "grpc-status-details-bin"
"""Trailer that carries the serialised Status; gRPC's convention."""

_DOMAIN = "kernel_foundry"
_RETRY_DELAY = Duration(nanos=100_000_000)

_CLASS_BY_REASON: dict[str, type[KernelFoundryError]] = {
    value.reason: value
    for value in vars(errors).values()
    if isinstance(value, type) and issubclass(value, KernelFoundryError)
}

_CLASS_BY_CODE: dict[int, type[KernelFoundryError]] = {
    # For statuses made by the transport, which carry no ErrorInfo.
    StatusCode.INVALID_ARGUMENT: errors.InvalidArgumentError,
    StatusCode.DEADLINE_EXCEEDED: errors.DeadlineExceededError,
    StatusCode.UNAVAILABLE: errors.ServiceUnavailableError,
    StatusCode.UNAUTHENTICATED: errors.UnauthenticatedError,
    StatusCode.PERMISSION_DENIED: errors.PermissionDeniedError,
    grpc.StatusCode.CANCELLED.value[0]: errors.ServiceUnavailableError,  # server's grace is over
}


_CARRIER_CLASS: dict[int, type[KernelFoundryError]] = {
    # Statuses without ErrorInfo are none of a service of ours, but of what carries its calls: an
    # ingress with a queue of its own, which knows no such application now or lost its replica.
    StatusCode.RESOURCE_EXHAUSTED: errors.DeviceBusyError,
    StatusCode.NOT_FOUND: errors.ServiceUnavailableError,
    StatusCode.INTERNAL: errors.ServiceUnavailableError,
}


def to_status(error: KernelFoundryError, service: str) -> Status:
    """Return the status of `error`, its texts bounded.

    Args:
        error: What the service raised.
        service: Short name of the service, such as "archive".
    """
    message = _bounded(error.message)
    metadata = {key: _bounded(value) for key, value in error.metadata.items()}
    status = Status(code=int(error.code), message=message)
    _add_detail(
        status,
        details_pb2.ErrorInfo(
            reason=error.reason, domain=f"{service}.{_DOMAIN}", metadata=metadata
        ),
    )
    is_busy = isinstance(error, errors.DeviceBusyError)
    make_detail = _retry_info if is_busy else _DETAIL_BY_CODE.get(error.code)
    if make_detail is not None:
        _add_detail(status, make_detail(error, message))
    return status


def from_status(status: Status) -> KernelFoundryError:
    """Return the error that `to_status` was given; its class by reason, else by code."""
    for packed in status.details:
        info = details_pb2.ErrorInfo()
        if packed.Unpack(info) and info.domain.endswith(f".{_DOMAIN}"):
            kind = _CLASS_BY_REASON.get(info.reason) or _class_by_code(status.code)
            error = kind(status.message)
            error.metadata = dict(info.metadata)  # its keys are the service's: no arguments
            return error
    return _class_by_code(status.code)(status.message)


def from_rpc_error(error: grpc.aio.AioRpcError, target: str) -> KernelFoundryError:
    """Return our error for a failed call to the service at `target`."""
    for key, value in error.trailing_metadata() or ():
        if key == DETAILS_KEY and isinstance(value, bytes):
            with contextlib.suppress(DecodeError):  # whoever answers is not always one of us
                return from_status(Status.FromString(value))
    code = error.code().value[0]
    kind = _CARRIER_CLASS.get(code) or _class_by_code(code)
    return kind(f"{target}: {error.code().name}: {error.details()}", target=target)


def _class_by_code(code: int) -> type[KernelFoundryError]:
    return _CLASS_BY_CODE.get(code, KernelFoundryError)


def _bounded(text: str) -> str:
    # The middle goes: the start says what happened, the end of a traceback where.
    text = text.encode(errors="replace").decode()
    if len(text) <= ERROR_TEXT_LIMIT:
        return text
    half = ERROR_TEXT_LIMIT // 2 - 1
    return f"{text[:half]}…{text[-half:]}"


def _add_detail(status: Status, detail: Message) -> None:
    packed = AnyMessage()
    packed.Pack(detail)
    status.details.append(packed)


def _bad_request(error: KernelFoundryError, message: str) -> Any:
    violation = details_pb2.BadRequest.FieldViolation(
        field=error.metadata.get("field", ""), description=message
    )
    return details_pb2.BadRequest(field_violations=[violation])


def _resource_info(error: KernelFoundryError, message: str) -> Any:
    name = next(iter(error.metadata.values()), "")
    return details_pb2.ResourceInfo(resource_name=_bounded(name), description=message)


def _precondition_failure(error: KernelFoundryError, message: str) -> Any:
    violation = details_pb2.PreconditionFailure.Violation(type=error.reason, description=message)
    return details_pb2.PreconditionFailure(violations=[violation])


def _quota_failure(_: KernelFoundryError, message: str) -> Any:
    return details_pb2.QuotaFailure(
        violations=[details_pb2.QuotaFailure.Violation(description=message)]
    )


def _retry_info(_error: KernelFoundryError, _message: str) -> Any:
    return details_pb2.RetryInfo(retry_delay=_RETRY_DELAY)


_DETAIL_BY_CODE: dict[int, Callable[[KernelFoundryError, str], Any]] = {
    StatusCode.INVALID_ARGUMENT: _bad_request,
    StatusCode.NOT_FOUND: _resource_info,
    StatusCode.ALREADY_EXISTS: _resource_info,
    StatusCode.FAILED_PRECONDITION: _precondition_failure,
    StatusCode.RESOURCE_EXHAUSTED: _quota_failure,
    StatusCode.UNAVAILABLE: _retry_info,
}
