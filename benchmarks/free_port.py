"""A port of this host that nobody listens at."""

import socket


def free_port() -> int:
    """Return one of the loopback's; another process may take it before the caller does."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
