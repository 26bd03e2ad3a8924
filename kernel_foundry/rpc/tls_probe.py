"""Finds out what TLS a port speaks, for whoever could not be served there."""

import asyncio
import ssl
from enum import Enum
from typing import Final

_LONGEST_S: Final = 1.0
_NOT_TLS: Final = "WRONG_VERSION_NUMBER"
"""OpenSSL's reason where the first bytes of an answer are none of TLS."""


class PortTls(Enum):
    """The protocol that a port speaks."""

    NONE = "none"
    TLS = "TLS"
    MUTUAL = "mutual TLS"
    """As it seems: it closes the connection of a client that shows no certificate."""


async def port_tls(address: str) -> PortTls | None:
    """Return the protocol of the server at `host:port`; None if that is not clear within 1 s.

    Nothing is sent beyond a handshake.
    """
    host, _, port = address.rpartition(":")
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # who it is does not matter here
    context.set_alpn_protocols(["h2"])  # gRPC's servers talk to nobody else
    try:
        async with asyncio.timeout(_LONGEST_S):
            reader, writer = await asyncio.open_connection(host.strip("[]"), int(port), ssl=context)
            try:
                is_welcome = await _says_something(reader)
            finally:
                writer.transport.abort()
    except ssl.SSLError as error:
        return PortTls.NONE if error.reason == _NOT_TLS else None
    except (OSError, TimeoutError):
        return None
    return PortTls.TLS if is_welcome else PortTls.MUTUAL


async def _says_something(reader: asyncio.StreamReader) -> bool:
    """Whether HTTP/2's settings come; TLS 1.3 looks at a client's certificate after its handshake.

    gRPC's servers close the connection then, some others say why.
    """
    try:
        return bool(await reader.read(1))
    except (ConnectionError, ssl.SSLError):
        return False
