"""How both sides of a connection know each other: TLS, tokens, and where neither is needed.

UNIX sockets need nothing: their files are their owner's alone. Loopback needs nothing unless it is
given. Any other address needs TLS, and tokens or client certificates, or a plain "insecure".
"""

import ipaddress
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

import grpc

from kernel_foundry.errors import InvalidArgumentError

_PREFIX: Final = "KERNEL_FOUNDRY_"
_UNIX: Final = "unix:"

PRIORITY_KEY: Final = "kernel-foundry-priority"
"""Metadata of a call that asks for a priority, a digit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSecurity:
    """Who may connect to a service; all files are PEM."""

    certificate: Path | None = None
    """The service's certificate, with its chain."""
    key: Path | None = None
    client_ca: Path | None = None
    """Clients have to show a certificate that this authority signed."""
    tokens: Path | None = None
    """File of tokens (`rpc/tokens.py`), one of which each call has to show."""
    usage: Path | None = None
    """File of what users have used of their quotas; None: beside the tokens."""
    audit_log: Path | None = None
    """File that gets a line for each call; None: the service's log."""
    insecure: bool = False
    """Serve anybody who reaches the address."""

    def credentials(self, listen: str) -> grpc.ServerCredentials | None:
        """Return the TLS credentials for an address; None: it is served without TLS.

        Raises:
            InvalidArgumentError: the address needs more than is given, or a file cannot be read.
        """
        if (self.certificate is None) != (self.key is None):
            raise InvalidArgumentError(
                "TLS needs a certificate and its key: --tls-cert and --tls-key", field="tls"
            )
        if self.client_ca is not None and self.certificate is None:
            raise InvalidArgumentError(
                "client certificates need TLS: --tls-cert and --tls-key", field="tls"
            )
        if is_unix(listen):
            return None
        knows_clients = self.tokens is not None or self.client_ca is not None
        is_safe = self.certificate is not None and knows_clients
        if not (is_safe or self.insecure or is_loopback(listen)):
            raise InvalidArgumentError(
                f"{listen} can be reached from other machines, and whoever reaches it may run code"
                " here: give --tls-cert, --tls-key, and --tokens or --tls-client-ca; listen on"
                " localhost or unix:/PATH; or say --insecure inside a network that you trust",
                field="listen",
            )
        if self.certificate is None or self.key is None:
            return None
        return grpc.ssl_server_credentials(
            [(_pem(self.key), _pem(self.certificate))],
            root_certificates=_pem(self.client_ca) if self.client_ca else None,
            require_client_auth=self.client_ca is not None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSecurity:
    """How a client knows a service, and what it shows; all files are PEM."""

    ca: Path | None = None
    """Authority of services' certificates; with it every TCP connection is TLS."""
    certificate: Path | None = None
    key: Path | None = None
    token: str = ""
    insecure: bool = False
    """Show the token without TLS, too."""
    priority: str = ""
    """That calls ask for, a digit; "" for none."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """Return what `KERNEL_FOUNDRY_TLS_CA`, `_TLS_CERT`, `_TLS_KEY` and `_TOKEN` say."""

        def path(name: str) -> Path | None:
            text = environment.get(_PREFIX + name, "")
            return Path(text) if text else None

        return cls(
            ca=path("TLS_CA"),
            certificate=path("TLS_CLIENT_CERT"),
            key=path("TLS_CLIENT_KEY"),
            token=environment.get(_PREFIX + "TOKEN", "").strip(),
            insecure=environment.get(_PREFIX + "INSECURE", "") in ("1", "true", "yes"),
            priority=environment.get(_PREFIX + "PRIORITY", "").strip(),
        )

    def metadata(self, target: str) -> tuple[tuple[str, str], ...]:
        """Return what each call to a target shows.

        Raises:
            InvalidArgumentError: the token would travel readable to another machine, or there is no
                such priority.
        """
        if not self.token or is_unix(target):
            return ()
        self.check_private(target)
        if self.priority and not re.fullmatch("[0-9]", self.priority):
            raise InvalidArgumentError(
                f"{_PREFIX}PRIORITY={self.priority!r}: expected 0 to 9", field="priority"
            )
        asked = ((PRIORITY_KEY, self.priority),) if self.priority else ()
        return (("authorization", f"Bearer {self.token}"), *asked)

    def check_private(self, target: str) -> None:
        """Refuse to send tokens to a TCP target for all to read.

        Raises:
            InvalidArgumentError: it is another machine, and there is neither TLS nor `insecure`.
        """
        if self.ca is None and not self.insecure and not is_loopback(target):
            raise InvalidArgumentError(
                f"the token would travel to {target} for all to read: set {_PREFIX}TLS_CA to the"
                f" authority of its certificate, or {_PREFIX}INSECURE=1 inside a network that you"
                " trust",
                field="token",
            )

    def channel(self, target: str, options: tuple[tuple[str, Any], ...]) -> grpc.aio.Channel:
        """Return a channel to a target, by TLS where there is an authority.

        Raises:
            InvalidArgumentError: a file cannot be read.
        """
        if self.ca is None or is_unix(target):
            return grpc.aio.insecure_channel(target, options=options)
        credentials = grpc.ssl_channel_credentials(
            _pem(self.ca),
            _pem(self.key) if self.key else None,
            _pem(self.certificate) if self.certificate else None,
        )
        return grpc.aio.secure_channel(target, credentials, options=options)


def is_unix(address: str) -> bool:
    """Return whether an address is a UNIX socket."""
    return address.startswith(_UNIX)


def is_loopback(address: str) -> bool:
    """Return whether only this machine reaches an address `host:port`."""
    host = address.rpartition(":")[0].strip("[]")
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _pem(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidArgumentError(f"{path}: {error.strerror}", field="tls") from error
