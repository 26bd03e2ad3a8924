"""The server: one connection, one request, one answer; on this machine alone."""

import asyncio
import contextlib
import logging
import os
import secrets
from collections.abc import AsyncGenerator
from contextlib import aclosing
from http import HTTPStatus
from typing import Final

from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.sdk.services import Directory, Targets
from kernel_foundry.ui.access import HEADERS, PageAccess
from kernel_foundry.ui.http import (
    LARGEST_HEAD,
    BadRequestError,
    Response,
    head_of,
    read_body,
    read_head,
)
from kernel_foundry.ui.routes import Routes

_LOGGER = logging.getLogger(__name__)

HOST: Final = "127.0.0.1"

MOST_CONNECTIONS: Final = 128
"""At once. A page has six at most, and a tab that follows a run keeps one of them."""


class PageServer:
    """Serves the page while it is entered.

    Args:
        targets: Where the services are.
        port: Of this machine; 0: any that is free.
    """

    def __init__(self, targets: Targets, port: int = 0) -> None:
        self._targets = targets
        self._port = port
        self._token = secrets.token_urlsafe(32)
        self._stack = contextlib.AsyncExitStack()
        self._connections: set[asyncio.Task[None]] = set()
        self._unasked: dict[asyncio.Task[None], None] = {}
        """Connections whose request is not there yet, the oldest first."""

    @property
    def address(self) -> str:
        """What opens the page: it holds the token."""
        return f"http://{HOST}:{self._port}/?token={self._token}"

    async def __aenter__(self) -> "PageServer":
        """Listen.

        Raises:
            InvalidArgumentError: the port is taken.
        """
        directory = Directory(self._targets)
        self._stack.push_async_callback(directory.close)
        self._routes = Routes(directory)
        self._stack.push_async_callback(self._routes.close)
        self._stack.push_async_callback(self._end_connections)
        try:
            server = await asyncio.start_server(self._accept, HOST, self._port, limit=LARGEST_HEAD)
        except OSError as error:
            why = os.strerror(error.errno) if error.errno else str(error)
            raise InvalidArgumentError(
                f"port {self._port} cannot be listened on ({why}):"
                " choose another --port, or leave it out",
                field="port",
            ) from error
        self._stack.callback(server.close)
        self._port = server.sockets[0].getsockname()[1]
        self._access = PageAccess(self._token, self._port)
        return self

    async def __aexit__(self, *_exc: object) -> None:
        """Listen no more, end the streams, and close what was opened."""
        await self._stack.aclose()

    async def _end_connections(self) -> None:
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a connection in a task of our own, which may be cancelled."""
        if len(self._connections) >= MOST_CONNECTIONS:
            oldest = next(iter(self._unasked), None)
            if oldest is None:
                writer.write(head_of(_BUSY, HEADERS) + _BUSY.body)
                writer.close()
                return
            # Whoever opens connections and says nothing keeps nobody else out.
            self._unasked.pop(oldest)
            oldest.cancel()
        task = asyncio.create_task(self._serve(reader, writer))
        self._connections.add(task)
        self._unasked[task] = None
        task.add_done_callback(self._connections.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            response = await self._answer(reader)
            if response is not None:
                await _send(reader, writer, response)
        except ConnectionError:
            pass  # the browser left
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader) -> Response | None:
        task = asyncio.current_task()
        assert task is not None  # `_accept` makes one
        try:
            try:
                head = await read_head(reader)
            finally:
                self._unasked.pop(task, None)
            if head is None:
                return None
            # Whoever may not ask has no body of it read.
            if refusal := self._access.refusal(head):
                return refusal
            request = await read_body(reader, head)
            return None if request is None else await self._routes.answer(request)
        except BadRequestError as error:
            return Response(status=error.status, body=f"{error}\n".encode())
        except Exception:
            _LOGGER.exception("a request of the page failed")
            return Response(
                status=HTTPStatus.INTERNAL_SERVER_ERROR, body=b"it failed; the log says why\n"
            )


_BUSY: Final = Response(
    status=HTTPStatus.SERVICE_UNAVAILABLE, body=b"too many connections: close other pages\n"
)


async def _send(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, response: Response
) -> None:
    writer.write(head_of(response, HEADERS) + response.body)
    await writer.drain()
    if response.stream is None:
        return
    sending = asyncio.create_task(_send_stream(writer, response.stream))
    # A browser that leaves is noticed at once, not when the run has something to tell.
    leaving = asyncio.create_task(reader.read(1))
    try:
        await asyncio.wait((sending, leaving), return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (sending, leaving):
            task.cancel()
        ended, _ = await asyncio.gather(sending, leaving, return_exceptions=True)
    if isinstance(ended, Exception):
        raise ended


async def _send_stream(writer: asyncio.StreamWriter, parts: AsyncGenerator[bytes, None]) -> None:
    async with aclosing(parts) as stream:
        async for part in stream:
            writer.write(part)
            await writer.drain()
