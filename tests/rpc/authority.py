"""An authority that issues certificates for 127.0.0.1."""

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Authority:
    """Its certificate is `ca.pem` in its folder."""

    folder: Path
    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @classmethod
    def make(cls, folder: Path) -> "Authority":
        folder.mkdir()
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, folder.name)])
        certificate = _builder(name, name, key).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        authority = cls(folder, key, certificate.sign(key, hashes.SHA256()))
        (folder / "ca.pem").write_bytes(_pem(authority.certificate))
        return authority

    def issue(self, name: str) -> tuple[Path, Path]:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        here = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
        certificate = (
            _builder(subject, self.certificate.subject, key)
            .add_extension(x509.SubjectAlternativeName([here]), critical=False)
            .sign(self.key, hashes.SHA256())
        )
        files = (self.folder / f"{name}.pem", self.folder / f"{name}.key")
        files[0].write_bytes(_pem(certificate))
        files[1].write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        return files


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
