"""Addresses of services, `host:port` or `unix:/path`: what is one, and why one cannot be bound."""

import errno
import os
import re
import socket
from pathlib import Path
from typing import Final

from kernel_foundry.errors import InvalidArgumentError, ServiceUnavailableError

LAST_PORT: Final = 65_535
_UNIX: Final = "unix:"
_HOST: Final = re.compile(r"[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+(%[A-Za-z0-9._-]+)?\]")
_LONGEST_SOCKET: Final = 107
"""Bytes of a socket's path, by Linux' `sockaddr_un`."""


def check_address(
    address: str,
    field: str,
    *,
    first_port: int = 0,
    last_port: int = LAST_PORT,
    takes_unix: bool = True,
) -> None:
    """Refuse what is no address; gRPC takes port 99999 for another one.

    Args:
        address: `host:port`, `[address of IPv6]:port` or `unix:/path`.
        field: Where it was given, for the message: "--listen".
        first_port: Lowest port that it may have; 0 stands for any free one.
        last_port: The highest.
        takes_unix: Whether it may be a UNIX socket.

    Raises:
        InvalidArgumentError: it is none.
    """
    or_unix = " or unix:/PATH" if takes_unix else ""
    if takes_unix and address.startswith(_UNIX):
        length = len(os.fsencode(address.removeprefix(_UNIX)))
        if not 0 < length <= _LONGEST_SOCKET:
            raise InvalidArgumentError(
                f"{field} {address!r}: expected unix:/PATH with a path of 1 to {_LONGEST_SOCKET}"
                f" bytes; it has {length}",
                field=field,
            )
        return
    host, _, port = address.rpartition(":")
    if not host:
        missing = "host" if ":" in address or address.isdecimal() else "port"
        raise InvalidArgumentError(
            f"{field} {address!r} has no {missing}: expected HOST:PORT{or_unix}", field=field
        )
    if not _HOST.fullmatch(host):
        raise InvalidArgumentError(
            f"{field} {address!r}: {host!r} is no host: expected HOST:PORT or [IPV6]:PORT{or_unix}",
            field=field,
        )
    is_number = port.isascii() and port.isdecimal() and len(port) <= len(str(LAST_PORT))
    if not is_number or not first_port <= int(port) <= last_port:
        raise InvalidArgumentError(
            f"{field} {address!r}: expected HOST:PORT with a port from {first_port} to"
            f" {last_port}{or_unix}",
            field=field,
        )


def why_not_bound(address: str) -> str:
    """Return why nothing can listen at an address, and what to do; "" if it is not known."""
    if address.startswith(_UNIX):
        folder = Path(address.removeprefix(_UNIX)).absolute().parent
        if not folder.is_dir():
            return f"there is no folder {folder}: make it"
        return "" if os.access(folder, os.W_OK) else f"this user may not write in {folder}"
    host, _, port = address.rpartition(":")
    try:
        failures = _bind_failures(host, port)
    except socket.gaierror:
        return f"there is no host {host}: give a name or an address of this machine"
    return _reason(failures[0], host, port) if failures else ""


def check_not_in_use(address: str) -> None:
    """Refuse a name if a program listens at one of its addresses: clients could reach that one.

    gRPC is content with the others: with 127.0.0.1 taken, "localhost" would be ::1 alone.

    Raises:
        ServiceUnavailableError: it is in use.
    """
    host, _, port = address.rpartition(":")
    if address.startswith(_UNIX) or port == "0":
        return
    try:
        failures = _bind_failures(host, port)
    except socket.gaierror:
        return  # binding it fails, too, and says why
    for failure in failures:
        if failure.errno == errno.EADDRINUSE:
            reason = _reason(failure, host, port)
            raise ServiceUnavailableError(f"cannot listen on {address}: {reason}", target=address)


def _bind_failures(host: str, port: str) -> list[OSError]:
    """Try to bind every address of a host; return what failed."""
    failures = []
    for family, kind, protocol, _name, place in socket.getaddrinfo(
        host.strip("[]"), int(port), type=socket.SOCK_STREAM
    ):
        try:
            with socket.socket(family, kind, protocol) as tried:
                tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do
                tried.bind(place)
        except OSError as error:
            failures.append(error)
    return failures


def _reason(error: OSError, host: str, port: str) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {port} is in use: give another"
    if error.errno == errno.EADDRNOTAVAIL:
        return f"this machine has no address {host}"
    if error.errno == errno.EACCES:
        return f"this user may not use port {port}: give one from 1024 on"
    return error.strerror or str(error)
