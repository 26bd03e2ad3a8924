"""An ingress that carries calls as Ray Serve's does: bytes in, a context of its own, bytes out."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc

from evaluator_svc.ray_app import add_methods
from evaluator_svc.service import SERVICE
from kernel_foundry.rpc.carried import CarriedService


class _Context:
    """Of one call; what it holds is set on gRPC's own with each answer."""

    def __init__(self, context: Any) -> None:
        self._context = context
        self._code: Any = None
        self._details = ""
        self._trailing: list[Any] = []

    def invocation_metadata(self) -> list[tuple[str, str]]:
        return list(self._context.invocation_metadata())

    def peer(self) -> str:
        return str(self._context.peer())

    def code(self) -> Any:
        return self._code

    def set_code(self, code: grpc.StatusCode) -> None:
        self._code = code

    def set_details(self, details: str) -> None:
        self._details = details

    def set_trailing_metadata(self, trailing_metadata: list[Any]) -> None:
        self._trailing = trailing_metadata

    def apply(self) -> None:
        if self._code:
            self._context.set_code(self._code)
            self._context.set_details(self._details)
            self._context.set_trailing_metadata(self._trailing)


class _Ingress:
    def __init__(self, carried: CarriedService, most: int) -> None:
        self._carried = carried
        self._most = most
        self.calls = 0
        for method in SERVICE.methods:
            make = self._streaming if method.server_streaming else self._unary
            setattr(self, method.name, make(method.name))

    def _unary(self, name: str) -> Any:
        async def call(request: bytes, context: Any) -> bytes:
            self.calls += 1
            if self.calls > self._most:  # as where its own queue is full: a code, and no details
                context.set_code(grpc.StatusCode.RESOURCE_EXHAUSTED)
                return b""
            own = _Context(context)
            answer = await self._carried.answer(name, request, own)
            own.apply()
            return answer

        return call

    def _streaming(self, name: str) -> Any:
        async def call(request: bytes, context: Any) -> AsyncIterator[bytes]:
            own = _Context(context)
            async for answer in self._carried.answers(name, request, own):
                own.apply()
                yield answer

        return call


@asynccontextmanager
async def carrying(carried: CarriedService, *, most: int = 1 << 30) -> AsyncIterator[str]:
    """Yield the address of an ingress before a service, which answers `most` calls."""
    server = grpc.aio.server()
    add_methods(_Ingress(carried, most), server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(5.0)
