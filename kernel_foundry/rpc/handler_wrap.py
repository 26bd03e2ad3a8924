"""Handlers of gRPC methods put into others, for interceptors."""

from typing import Any, Final, TypeAlias

import grpc

_Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"

_OURS: Final = "/kernel_foundry."
_CODES: Final = {code.value[0]: code.name for code in grpc.StatusCode}


def wrapped(handler: "_Handler", unary: Any, stream: Any, *, read: Any = None) -> "_Handler":
    """Return a handler of a kind as another, by one of two functions; itself if it is neither kind.

    Args:
        handler: The other.
        unary: Answers where that one gives one answer.
        stream: Answers where its answers stream; it is given the request, or their stream.
        read: Reads requests; None: as the other does.
    """
    read = read or handler.request_deserializer
    if handler.unary_unary is not None:
        return grpc.unary_unary_rpc_method_handler(
            unary, request_deserializer=read, response_serializer=handler.response_serializer
        )
    if handler.unary_stream is not None:
        return grpc.unary_stream_rpc_method_handler(
            stream, request_deserializer=read, response_serializer=handler.response_serializer
        )
    if handler.stream_stream is not None:
        return grpc.stream_stream_rpc_method_handler(
            stream, request_deserializer=read, response_serializer=handler.response_serializer
        )
    return handler


def is_ours(method: str) -> bool:
    """Return whether a method's path is of our own services; health and reflection are gRPC's."""
    return method.startswith(_OURS)


def code_name(code: Any) -> str:
    """Return the name of the status that a call's context has; "UNKNOWN" for none."""
    return _CODES.get(getattr(code, "value", (code,))[0], "UNKNOWN")
