"""Bearer tokens: who may call what, until when. A file keeps their hashes, never the tokens."""

import fcntl
import hashlib
import hmac
import json
import math
import os
import re
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from enum import IntEnum
from pathlib import Path
from typing import Any, Final

from kernel_foundry.bounded_json import parse_json
from kernel_foundry.domain.name import check_name
from kernel_foundry.errors import (
    InvalidArgumentError,
    PermissionDeniedError,
    UnauthenticatedError,
)
from kernel_foundry.text_file import read_text_file
from kernel_foundry.whole_file import replace_file, writing

_LONGEST_FILE: Final = 1 << 20
_TOKEN: Final = re.compile(r"kf_([0-9a-f]{8})_([0-9a-f]{64})")
_NOBODY: Final = hashlib.sha256(b"nobody").hexdigest()
_DAY_S: Final = 86_400.0


class Role(IntEnum):
    """The calls that a token allows; each role includes those below it."""

    READ = 1
    """Looking at what there is."""
    RUN = 2
    """Judging, proposing and recording, which runs code and spends money."""
    ADMIN = 3
    """Removing what others made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """The stored part of a token."""

    id: str
    name: str
    """Whose it is."""
    role: str
    sha256: str
    """SHA-256 of the secret; that is random, so a slow hash would add nothing."""
    created_unix_s: float
    expires_unix_s: float
    is_revoked: bool = False
    most_evaluations: int | None = None
    """Quotas, see `quotas.py`; None: unlimited."""
    most_usd: float | None = None
    most_at_once: int | None = None
    most_priority: int = 0
    """Highest priority of its calls on devices, 0 to 9; a higher one is lowered to it."""

    @property
    def is_admin(self) -> bool:
        """Whether it allows everything."""
        return self.role == Role.ADMIN.name.lower()

    def check_role(self, least: Role) -> None:
        """Refuse what needs a higher role.

        Raises:
            PermissionDeniedError: its role is too low.
        """
        if Role[self.role.upper()] < least:
            raise PermissionDeniedError(
                f"this needs the role {least.name.lower()}, and the token has {self.role}",
                role=self.role,
                needed=least.name.lower(),
            )


class TokenFile:
    """The tokens of a service, as its file has them at each call.

    Args:
        path: The file; read again whenever it was written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._tokens: dict[str, Token] = {}
        self._stamp: tuple[int, int, int] | None = None

    def tokens(self) -> tuple[Token, ...]:
        """Return all tokens, revoked and expired ones included.

        Raises:
            InvalidArgumentError: the file cannot be read.
        """
        try:
            status = self._path.stat()
            stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
        except FileNotFoundError:
            self._tokens, self._stamp = {}, None  # who takes the file away ends all tokens
            return ()
        except OSError as error:
            raise InvalidArgumentError(
                f"{self._path} cannot be read: {error.strerror}", field="tokens"
            ) from error
        if stamp != self._stamp:
            self._tokens = {token.id: token for token in _read(self._path)}
            self._stamp = stamp
        return tuple(self._tokens.values())

    def create(
        self,
        name: str,
        role: Role,
        days: float,
        *,
        evaluations: int | None = None,
        usd: float | None = None,
        at_once: int | None = None,
        priority: int = 0,
    ) -> str:
        """Add a token; return its text, which is kept nowhere.

        Args:
            name: Whose it is.
            role: What it allows.
            days: Until it expires.
            evaluations: Quota of its user's evaluations; None: unlimited.
            usd: Of what its user's proposals cost.
            at_once: Of its user's calls on devices at the same time.
            priority: The highest that its calls may ask for, 0 to 9.

        Raises:
            InvalidArgumentError: the name is none, the days are no number, or the file cannot be
                written.
        """
        check_name(name, "name")
        if not math.isfinite(days):
            raise InvalidArgumentError(f"{days} days: expected a number", field="days")
        secret, created_s = secrets.token_hex(32), time.time()
        token = Token(
            id=secrets.token_hex(4),
            name=name,
            role=role.name.lower(),
            sha256=_hash(secret),
            created_unix_s=created_s,
            expires_unix_s=created_s + days * _DAY_S,
            most_evaluations=evaluations,
            most_usd=usd,
            most_at_once=at_once,
            most_priority=priority,
        )
        with _alone(self._path):
            _write(self._path, (*self.tokens(), token))
        return f"kf_{token.id}_{secret}"

    def revoke(self, token_id: str) -> Token:
        """End a token now; return it.

        Raises:
            InvalidArgumentError: there is none of that id.
        """
        with _alone(self._path):
            tokens = {token.id: token for token in self.tokens()}
            if token_id not in tokens:
                raise InvalidArgumentError(f"no token {token_id!r} in {self._path}", field="id")
            tokens[token_id] = replace(tokens[token_id], is_revoked=True)
            _write(self._path, tuple(tokens.values()))
        return tokens[token_id]

    def bearer(self, text: str) -> Token:
        """Return the token of a call.

        Args:
            text: What the call presents, without "Bearer"; "" for nothing.

        Raises:
            UnauthenticatedError: no token, an unknown, expired or revoked one; all are told alike.
        """
        match = _TOKEN.fullmatch(text)
        self.tokens()
        token = self._tokens.get(match.group(1)) if match else None
        # An unknown id takes the same comparison as a known one.
        presented = _hash(match.group(2) if match else "")
        is_secret = hmac.compare_digest(presented, token.sha256 if token else _NOBODY)
        if (
            token is None
            or not is_secret
            or token.is_revoked
            or token.expires_unix_s <= time.time()
        ):
            raise UnauthenticatedError(
                "a valid token is needed: set KERNEL_FOUNDRY_TOKEN to one that"
                " `kfoundry token create` made for this service"
            )
        return token


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _read(path: Path) -> list[Token]:
    try:
        listed = parse_json(read_text_file(path, _LONGEST_FILE).encode())
        return [_token(entry) for entry in listed]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise InvalidArgumentError(f"{path} is not a token file: {error}", field="tokens") from (
            error
        )


def _token(entry: Any) -> Token:
    token = Token(**entry)
    texts = (token.id, token.name, token.sha256)
    numbers = (token.created_unix_s, token.expires_unix_s)
    if not all(isinstance(text, str) for text in texts) or not all(
        isinstance(number, int | float) and math.isfinite(number) for number in numbers
    ):
        raise TypeError("a field has another type, or is not a number")
    Role[token.role.upper()]
    if not isinstance(token.is_revoked, bool):
        raise TypeError("is_revoked is not true or false")
    for quota in (token.most_evaluations, token.most_usd, token.most_at_once):
        if quota is not None and not (type(quota) in (int, float) and quota >= 0):
            raise TypeError("a quota is not a number")
    if token.most_at_once is not None and (
        type(token.most_at_once) is not int or not token.most_at_once
    ):
        raise TypeError("most_at_once is not a whole number from 1")
    if type(token.most_priority) is not int or not 0 <= token.most_priority <= 9:
        raise TypeError("most_priority is not a whole number from 0 to 9")
    return token


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Keep other processes from changing the file: who reads an old one would undo a revocation."""
    with writing(path, field="tokens"):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path.parent, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def _write(path: Path, tokens: tuple[Token, ...]) -> None:
    text = json.dumps([asdict(token) for token in tokens], indent=1) + "\n"
    with writing(path, field="tokens"):
        replace_file(path, text, mode=0o600)
