"""Finds out whether a port speaks TLS, for whoever could not be served there."""

import asyncio
import ssl
from typing import Final

_LONGEST_S: Final = 1.0
_NOT_TLS: Final = "WRONG_VERSION_NUMBER"
"""OpenSSL's reason where the first bytes of an answer are none of TLS."""


async def speaks_tls(address: str) -> bool | None:
    """Return whether what listens at `host:port` speaks TLS; None: it does not tell within 1 s.

    Nothing is sent beyond the begin of a handshake.
    """
    host, _, port = address.rpartition(":")
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # who it is does not matter here
    context.set_alpn_protocols(["h2"])  # gRPC's servers talk to nobody else
    try:
        async with asyncio.timeout(_LONGEST_S):
            _reader, writer = await asyncio.open_connection(
                host.strip("[]"), int(port), ssl=context
            )
    except ssl.SSLError as error:
        return False if error.reason == _NOT_TLS else None
    except (OSError, TimeoutError):
        return None
    writer.transport.abort()
    return True
