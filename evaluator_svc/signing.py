"""The evaluator's own key, and its signature under every verdict that passed.

Only the supervisor reads the key: locked processes see neither its file nor this process's
memory. Whoever has the user's account has the key too: a signature says which evaluator judged, and
that nothing was changed since.
"""

import dataclasses
import stat
import threading
import time
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from evaluator_svc.sandbox.host_paths import readable_paths
from kernel_foundry.domain.candidate import KernelSource
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.domain.task import Task
from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.evidence.record import record_of
from kernel_foundry.whole_file import create_private_file

_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
_SETTING: Final = "KERNEL_FOUNDRY_KEY_FILE"
_CACHE_KEY_BYTES: Final = 32
_CACHE_KEY_USE: Final = b"kernel-foundry cache 1"


class Signer:
    """Signs verdicts; the key is read, or created, when it is first needed."""

    def __init__(self, key_file: Path) -> None:
        self._key_file = key_file
        self._key: Ed25519PrivateKey | None = None
        self._cache_key = b""
        self._lock = threading.Lock()

    def have_key(self) -> None:
        """Read or create the key, before a verdict depends on it.

        Raises:
            InvalidArgumentError: it cannot be read or created; the message says what to do.
        """
        with self._lock:
            if self._key is None:
                self._key = _kept_key(self._key_file)

    def cache_key(self) -> bytes:
        """Return the key of this evaluator's caches, derived from its own; raises as `have_key`."""
        if not self._cache_key:
            self.have_key()
            assert self._key is not None
            derivation = HKDF(hashes.SHA256(), _CACHE_KEY_BYTES, salt=None, info=_CACHE_KEY_USE)
            self._cache_key = derivation.derive(self._key.private_bytes_raw())
        return self._cache_key

    def attested(self, task: Task, source: KernelSource, evaluation: Evaluation) -> Evaluation:
        """Return the evaluation of a candidate, signed if it passed."""
        if not evaluation.passed or evaluation.attestation is None:
            return dataclasses.replace(evaluation, attestation=None)
        self.have_key()
        assert self._key is not None
        return signed(task, source, evaluation, self._key)


def signed(
    task: Task, source: KernelSource, evaluation: Evaluation, key: Ed25519PrivateKey
) -> Evaluation:
    """Return an evaluation whose draft of an attestation is completed by digest and signature."""
    assert evaluation.attestation is not None, "seeds are drawn before a candidate passes"
    draft = dataclasses.replace(
        evaluation.attestation, signed_unix_s=time.time(), public_key=_public(key)
    )
    drafted = dataclasses.replace(evaluation, attestation=draft)
    digest = record_of(task, source, drafted).digest()
    attestation = dataclasses.replace(
        draft, digest=digest, signature=key.sign(bytes.fromhex(digest)).hex()
    )
    return dataclasses.replace(evaluation, attestation=attestation)


def own_public_key(key_file: Path) -> str:
    """Return the public half of the key in a file, in hexadecimal; "" when there is none."""
    return _public(_read(key_file)) if key_file.exists() else ""


def _public(key: Ed25519PrivateKey) -> str:
    return key.public_key().public_bytes_raw().hex()


def _kept_key(path: Path) -> Ed25519PrivateKey:
    _refuse_readable(path)
    if not path.exists():
        _make(path)
    return _read(path)


def _refuse_readable(path: Path) -> None:
    """Refuse a place that the sandbox lets candidates read."""
    resolved = path.resolve()
    for folder in readable_paths():
        if resolved.is_relative_to(Path(folder).resolve()):
            raise InvalidArgumentError(
                f"the key {path} would lie where candidates can read it ({folder}): set {_SETTING}",
                field="key_file",
            )


def _make(path: Path) -> None:
    """Create a key; processes that start at the same time all end up with the same one."""
    pem = Ed25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        create_private_file(path, pem)
    except OSError as error:
        raise InvalidArgumentError(
            f"the key of this evaluator cannot be kept in {path}: {error.strerror}; set {_SETTING}",
            field="key_file",
        ) from error


def _read(path: Path) -> Ed25519PrivateKey:
    try:
        if path.stat().st_mode & _OTHERS:
            raise InvalidArgumentError(
                f"others may read the key {path}: chmod 600 it, or remove it for a new one",
                field="key_file",
            )
        key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    except OSError as error:
        raise InvalidArgumentError(
            f"the key {path} cannot be read: {error.strerror}", field="key_file"
        ) from error
    except (ValueError, TypeError) as error:
        raise InvalidArgumentError(f"{path} is not a key: {error}", field="key_file") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise InvalidArgumentError(f"{path} is not an Ed25519 key", field="key_file")
    return key
