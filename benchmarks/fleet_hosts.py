"""Evaluators as processes on loopback, with TLS and tokens, and the fleet file that names them.

As a program it serves one fake evaluator: python -m benchmarks.fleet_hosts PORT FOLDER
"""

import asyncio
import contextlib
import datetime
import ipaddress
import os
import random
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from evaluator_svc.service import evaluator_service
from kernel_foundry.rpc.readiness import wait_until_serving
from kernel_foundry.rpc.security import ServerSecurity
from kernel_foundry.rpc.server import serve
from kernel_foundry.rpc.tokens import Role, TokenFile
from kernel_foundry.testing.evaluator import FakeEvaluator

FAKE_S: Final = 0.2
"""What a fake takes for a verdict; it gives one at a time."""
_CERTIFICATE: Final = "drill.pem"
_KEY: Final = "drill.key"
_TOKENS: Final = "tokens.json"
_START_S: Final = 280.0
"""Longest start of an evaluator, on a host that others use."""


def open_access(folder: Path) -> None:
    """Make a certificate and a token in `folder`; clients of this process show and trust them."""
    _write_certificate(folder)
    os.environ["KERNEL_FOUNDRY_TLS_CA"] = str(folder / _CERTIFICATE)
    os.environ["KERNEL_FOUNDRY_TOKEN"] = TokenFile(folder / _TOKENS).create("drill", Role.RUN, 1)


def fake_evaluator(port: int, folder: Path) -> tuple[str, ...]:
    """Return the arguments of Python that serve a fake."""
    return ("-m", "benchmarks.fleet_hosts", str(port), str(folder))


def real_evaluator(port: int, kind: str, folder: Path) -> tuple[str, ...]:
    """Return the arguments of Python that serve an evaluator of a device kind."""
    return (
        *("-m", "kernel_foundry.cli", "serve", "evaluator", "--listen", f"127.0.0.1:{port}"),
        *("--device", kind, "--threads", "1"),
        *("--tls-cert", str(folder / _CERTIFICATE), "--tls-key", str(folder / _KEY)),
        *("--tokens", str(folder / _TOKENS), "--audit-log", os.devnull),
    )


class Hosts:
    """The processes of some evaluators, and their fleet file.

    Args:
        folder: For the fleet file.
        commands: Arguments of Python that serve the evaluator of each port.
    """

    def __init__(self, folder: Path, commands: Mapping[int, tuple[str, ...]]) -> None:
        self.file = folder / "fleet.yaml"
        self._commands = commands
        self._processes: dict[int, asyncio.subprocess.Process] = {}

    async def start(self, port: int) -> None:
        """Start one, and wait until it serves."""
        while True:
            process = await asyncio.create_subprocess_exec(
                sys.executable, *self._commands[port], stderr=asyncio.subprocess.DEVNULL
            )
            self._processes[port] = process
            serving = asyncio.create_task(
                wait_until_serving(f"127.0.0.1:{port}", timeout_s=_START_S)
            )
            ended = asyncio.create_task(process.wait())
            try:
                await asyncio.wait({serving, ended}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                ended.cancel()
                serving.cancel()  # without effect once it is done
            if serving.done():
                return await serving
            await asyncio.sleep(0.5)  # its port was somebody's for a moment

    def list(self, *, removed: int | None = None, drained: int | None = None) -> None:
        """Write the fleet file, with all but the one that is removed."""
        part = self.file.with_suffix(".part")
        lines = (
            f"  - {{address: '127.0.0.1:{port}', drain: {str(port == drained).lower()}}}"
            for port in self._commands
            if port != removed
        )
        part.write_text("evaluators:\n" + "\n".join(lines) + "\n")
        part.replace(self.file)

    async def kill(self, port: int) -> None:
        """End one as a lost host does."""
        process = self._processes.pop(port)
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGKILL)
        await process.wait()

    async def end(self) -> None:
        """End all."""
        for port in list(self._processes):
            await self.kill(port)


async def _serve_fake(port: int, folder: Path) -> None:
    """Serve a fake that gives one verdict at a time, until it is killed."""
    turn = asyncio.Lock()

    async def take_time() -> None:
        async with turn:
            await asyncio.sleep(random.uniform(0.8, 1.2) * FAKE_S)

    security = ServerSecurity(
        certificate=folder / _CERTIFICATE,
        key=folder / _KEY,
        tokens=folder / _TOKENS,
        audit_log=Path(os.devnull),
    )
    await serve(
        [evaluator_service(FakeEvaluator(take_time))], f"127.0.0.1:{port}", security=security
    )


def _write_certificate(folder: Path) -> None:
    """Write a certificate for loopback that is its own authority, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "drill")])
    now = datetime.datetime.now(datetime.UTC)
    here = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([here]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / _CERTIFICATE).write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (folder / _KEY).write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )


if __name__ == "__main__":
    asyncio.run(_serve_fake(int(sys.argv[1]), Path(sys.argv[2])))
