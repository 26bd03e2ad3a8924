"""The server over streamable HTTP: on this machine alone, for whoever has one of its tokens."""

import hmac
import socket
from collections.abc import Callable, Sequence
from typing import Any, Final

import uvicorn
from mcp.server.mcpserver import MCPServer
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from kernel_foundry.errors import InvalidArgumentError

HOST: Final = "127.0.0.1"
_GRACE_SECONDS: Final = 5
"""Seconds for calls in flight after Ctrl-C: a client's open stream never ends by itself."""


def serve_http(
    server: MCPServer[Any], port: int, tokens: Sequence[str], say: Callable[[str], None]
) -> None:
    """Serve until Ctrl-C.

    Args:
        server: What is served.
        port: Of this machine; 0: any that is free.
        tokens: Who has one may call.
        say: Told of the address once it is listened on.

    Raises:
        InvalidArgumentError: the port is taken.
    """
    try:
        listener = socket.create_server((HOST, port))
    except OSError as error:
        raise InvalidArgumentError(
            f"port {port} cannot be listened on: {error.strerror}", field="port"
        ) from error
    with listener:
        say(f"http://{HOST}:{listener.getsockname()[1]}/mcp")
        # The SDK refuses foreign names in Host and Origin: a page that a browser shows cannot call.
        app = TokenGate(server.streamable_http_app(host=HOST), tokens)
        config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=_GRACE_SECONDS)
        uvicorn.Server(config).run(sockets=[listener])


class TokenGate:
    """Lets requests with a token through.

    Args:
        app: What is behind it.
        tokens: The secrets, without blanks.
    """

    def __init__(self, app: ASGIApp, tokens: Sequence[str]) -> None:
        self._app = app
        self._expected = [f"Bearer {token}".encode() for token in tokens]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] == "lifespan" or self._is_allowed(scope):
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            refused = PlainTextResponse("send the token: Authorization: Bearer TOKEN\n", 401)
            await refused(scope, receive, send)
        # Anything else ends without an answer, which refuses it.

    def _is_allowed(self, scope: Scope) -> bool:
        sent = [value for name, value in scope.get("headers", ()) if name == b"authorization"]
        if len(sent) != 1:
            return False
        return any(hmac.compare_digest(sent[0], expected) for expected in self._expected)
