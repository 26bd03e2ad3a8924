"""Whether the services behind a gateway ask for tokens: those that do not know no users."""

import asyncio
import logging
from typing import Any, Final

import grpc

from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.rpc.applications import list_method
from kernel_foundry.rpc.bounded_reader import MalformedMessage
from kernel_foundry.rpc.connection import APPLICATION_KEY

_log = logging.getLogger(__name__)

_DEADLINE_S: Final = 10.0


async def check_applications(channel: grpc.aio.Channel, path: str, ingress: str) -> None:
    """Refuse an ingress with an application that answers a call without a token.

    Args:
        channel: To the ingress.
        path: Of a method that only reads and takes an empty request.
        ingress: Its address, for the message.

    Raises:
        InvalidArgumentError: there is one.
    """
    try:
        answer: Any = await list_method(channel)(b"", timeout=_DEADLINE_S)
    except grpc.aio.AioRpcError as error:
        if error.code() is grpc.StatusCode.UNIMPLEMENTED:  # an evaluator itself
            await check_service(channel, path, ingress)
        else:
            _warn(ingress, f"{error.code().name}: {error.details()}")
        return
    if isinstance(answer, MalformedMessage):
        _warn(ingress, answer.reason)
        return
    checks = (check_service(channel, path, ingress, name) for name in answer.paths)
    await asyncio.gather(*checks)


async def check_service(
    channel: grpc.aio.Channel, path: str, address: str, application: str = ""
) -> None:
    """Refuse a service that answers a call without a token; warn of one that is away.

    Args:
        channel: To the service.
        path: Of a method that only reads and takes an empty request.
        address: Its address, for the message.
        application: Which one of an ingress.

    Raises:
        InvalidArgumentError: it answers.
    """
    metadata = ((APPLICATION_KEY, application),) if application else ()
    where = f"{address}/{application}" if application else address
    method: Any = channel.unary_unary(path)
    try:
        await method(b"", timeout=_DEADLINE_S, metadata=metadata)
    except grpc.aio.AioRpcError as error:
        if error.code() is not grpc.StatusCode.UNAUTHENTICATED:
            _warn(where, f"{error.code().name}: {error.details()}")
        return
    raise InvalidArgumentError(
        f"{where} asks for no tokens, so that it would take all callers of this gateway for nobody,"
        " who may change all runs and has no quotas: give it the same --tokens",
        field="tokens",
    )


def _warn(where: str, reason: str) -> None:
    _log.warning("whether %s asks for tokens is not known: %s", where, reason)
