"""The applications of Ray Serve behind an address: its ingress, or a gateway before it."""

from typing import Any, Final

import grpc
from google.protobuf.field_mask_pb2 import FieldMask

from kernel_foundry.rpc.connection import CLIENT_OPTIONS
from kernel_foundry.rpc.security import ClientSecurity
from kernel_foundry.rpc.status import from_rpc_error

LIST_APPLICATIONS: Final = "/ray.serve.RayServeAPIService/ListApplications"
_DEADLINE_S: Final = 30.0


async def applications(address: str) -> tuple[str, ...]:
    """Return the names of the applications at `host:port`; none where an evaluator itself is.

    Raises:
        KernelFoundryError: as any call of a client does.
    """
    security = ClientSecurity.from_environment()
    metadata = security.metadata(address)
    async with security.channel(address, CLIENT_OPTIONS) as channel:
        # Ray's answer has a list of texts as its first field, as a mask does.
        method: Any = channel.unary_unary(
            LIST_APPLICATIONS, response_deserializer=FieldMask.FromString
        )
        try:
            answer = await method(b"", metadata=metadata, timeout=_DEADLINE_S)
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.UNIMPLEMENTED:
                return ()
            raise from_rpc_error(error, address) from error
    return tuple(answer.paths)
