"""The applications of Ray Serve behind an address: its ingress, or a gateway before it."""

import re
from typing import Any, Final

import grpc
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.message import DecodeError

from kernel_foundry.errors import KernelFoundryError, ServiceUnavailableError
from kernel_foundry.rpc.bounded_reader import MalformedMessage
from kernel_foundry.rpc.connection import DEFAULT_OPTIONS, CallOptions, Connection

LIST_APPLICATIONS: Final = "/ray.serve.RayServeAPIService/ListApplications"
_LONGEST_ANSWER: Final = 1 << 16
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,100}")
"""A name becomes a part of a target, where a comma would begin an address, which gets the token."""


async def applications(address: str, options: CallOptions = DEFAULT_OPTIONS) -> tuple[str, ...]:
    """Return the names of the applications at `host:port`; none where an evaluator itself is.

    Raises:
        ServiceUnavailableError: there is an ingress without applications, or nothing at all.
        MalformedAnswerError: the answer is too long, no list, or has a name that is none.
        KernelFoundryError: as any call of a client does.
    """
    connection = Connection(address, options)
    try:
        answer: FieldMask = await connection.quick(list_method(connection.unbounded), b"")
    except KernelFoundryError as error:
        cause = error.__cause__
        if (
            isinstance(cause, grpc.aio.AioRpcError)
            and cause.code() is grpc.StatusCode.UNIMPLEMENTED
        ):
            return ()
        raise
    finally:
        await connection.close()
    if not answer.paths:
        raise ServiceUnavailableError(
            f"{address} has no applications: deploy some by `kfoundry fleet up`", target=address
        )
    return tuple(answer.paths)


def is_application(name: str) -> bool:
    """Return whether an application may be called so, to be found behind an address."""
    return _NAME.fullmatch(name) is not None


def list_method(channel: grpc.aio.Channel) -> Any:
    """Return the method that gives the names, as a `FieldMask`, or a `MalformedMessage`."""
    return channel.unary_unary(LIST_APPLICATIONS, response_deserializer=_read)


def _read(data: bytes) -> FieldMask | MalformedMessage:
    """Ray's answer has a list of texts as its first field, as a mask does."""
    if len(data) > _LONGEST_ANSWER:
        return MalformedMessage(f"{len(data)} bytes, expected at most {_LONGEST_ANSWER}")
    try:
        answer = FieldMask.FromString(data)
    except DecodeError as error:
        return MalformedMessage(str(error))
    for name in answer.paths:
        if not is_application(name):
            return MalformedMessage(
                f"an application is called {name[:100]!r}, expected letters, digits, - and _"
            )
    return answer
