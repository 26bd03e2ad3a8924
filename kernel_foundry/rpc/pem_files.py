"""PEM files of TLS, checked before gRPC has them: it aborts the process, or names no file."""

import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kernel_foundry.errors import InvalidArgumentError

_OTHER_KEY: Final = "KEY_VALUES_MISMATCH"
"""OpenSSL's reason where a key is not the certificate's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PemFile:
    """A file that a user named."""

    path: Path
    given_by: str
    """Option or variable that names it, for messages."""

    def read(self) -> bytes:
        """Return the content of the file.

        Raises:
            InvalidArgumentError: it cannot be read.
        """
        try:
            return self.path.read_bytes()
        except OSError as error:
            raise self._refused(error.strerror or str(error)) from error

    def read_certificates(self) -> bytes:
        """Return the content of the file.

        Raises:
            InvalidArgumentError: it cannot be read, or there is no certificate in it.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._load(
            lambda: context.load_verify_locations(cafile=self.path),
            lambda _error: "it has no certificate in PEM",
        )
        if not context.cert_store_stats()["x509"]:
            raise self._refused("it has no certificate in PEM")
        return self.read()

    def read_key(self, certificate: "PemFile") -> bytes:
        """Return the key in the file, which has to be that of `certificate`.

        Raises:
            InvalidArgumentError: it cannot be read, has no key, one with a password, or the key of
                another certificate.
        """

        def fault(error: ssl.SSLError) -> str:
            if error.reason == _OTHER_KEY:
                return f"it is not the key of {certificate.given_by} {certificate.path}"
            return f"it has no private key in PEM, or one with a password ({error.reason})"

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.set_ciphers("DEFAULT@SECLEVEL=0")  # how strong a key has to be, gRPC decides
        # An empty password, or OpenSSL would ask for one at the terminal.
        self._load(lambda: context.load_cert_chain(certificate.path, self.path, password=""), fault)
        return self.read()

    def _load(self, load: Callable[[], None], fault: Callable[[ssl.SSLError], str]) -> None:
        self.read()  # says which file it is that cannot be read
        try:
            load()
        except ssl.SSLError as error:
            raise self._refused(fault(error)) from error

    def _refused(self, fault: str) -> InvalidArgumentError:
        return InvalidArgumentError(f"{self.given_by} {self.path}: {fault}", field="tls")


def read_pair(certificate: PemFile, key: PemFile) -> tuple[bytes, bytes]:
    """Return a certificate with its chain, and its key.

    Raises:
        InvalidArgumentError: one of the files says why.
    """
    return certificate.read_certificates(), key.read_key(certificate)
