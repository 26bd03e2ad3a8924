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
from kernel_foundry.rpc.pem_files import PemFile, read_pair

_PREFIX: Final = "KERNEL_FOUNDRY_"
_UNIX: Final = "unix:"
_CLIENT_CERTIFICATE: Final = f"{_PREFIX}TLS_CLIENT_CERT"
_CLIENT_KEY: Final = f"{_PREFIX}TLS_CLIENT_KEY"

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
            InvalidArgumentError: the address needs more than is given, or a file cannot be used.
        """
        pair, client_ca = self.read_files()
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
        if pair is None:
            return None
        certificate, key = pair
        return grpc.ssl_server_credentials(
            [(key, certificate)],
            root_certificates=client_ca,
            require_client_auth=client_ca is not None,
        )

    def read_files(self) -> tuple[tuple[bytes, bytes] | None, bytes | None]:
        """Return the certificate with its key, and the authority of clients; None: not given.

        Raises:
            InvalidArgumentError: one is missing, or a file cannot be used.
        """
        if (self.certificate is None) != (self.key is None):
            raise InvalidArgumentError(
                "TLS needs a certificate and its key: --tls-cert and --tls-key", field="tls"
            )
        if self.certificate is None or self.key is None:
            if self.client_ca is not None:
                raise InvalidArgumentError(
                    "client certificates need TLS: --tls-cert and --tls-key", field="tls"
                )
            return None, None
        pair = read_pair(
            PemFile(path=self.certificate, given_by="--tls-cert"),
            PemFile(path=self.key, given_by="--tls-key"),
        )
        if self.client_ca is None:
            return pair, None
        authority = PemFile(path=self.client_ca, given_by="--tls-client-ca")
        return pair, authority.read_certificates()


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
        """Return the settings of the environment: `KERNEL_FOUNDRY_TLS_CA` and so on."""

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
        """Return the credentials of each call to a target.

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
            InvalidArgumentError: a file cannot be used, or a certificate has no key.
        """
        if self.ca is None or is_unix(target):
            return grpc.aio.insecure_channel(target, options=options)
        if (self.certificate is None) != (self.key is None):
            raise InvalidArgumentError(
                f"a client's certificate needs its key: {_CLIENT_CERTIFICATE} and {_CLIENT_KEY}",
                field="tls",
            )
        authority = PemFile(path=self.ca, given_by=f"{_PREFIX}TLS_CA").read_certificates()
        certificate: bytes | None = None
        key: bytes | None = None
        if self.certificate is not None and self.key is not None:
            certificate, key = read_pair(
                PemFile(path=self.certificate, given_by=_CLIENT_CERTIFICATE),
                PemFile(path=self.key, given_by=_CLIENT_KEY),
            )
        credentials = grpc.ssl_channel_credentials(authority, key, certificate)
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
