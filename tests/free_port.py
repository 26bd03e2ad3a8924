"""Ports for servers that cannot be asked which one they took."""

import contextlib
import random
import socket

_PORTS = range(20000, 32768)
"""Below those that the system gives to connections: whatever else is begun takes none of them."""


def free_port(count: int = 1) -> int:
    """Return the first of `count` neighbouring ports at which nobody listens."""
    while True:
        first = random.SystemRandom().choice(_PORTS[: len(_PORTS) - count])
        with contextlib.ExitStack() as probes, contextlib.suppress(OSError):
            for port in range(first, first + count):
                probes.enter_context(socket.socket()).bind(("127.0.0.1", port))
            return first
