"""What each user of a host's services has used, counted in a SQLite file beside their tokens."""

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kernel_foundry.errors import StoreUnavailableError

_BUSY_S: Final = 2.0
"""How long a service waits for another one that writes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a user has used."""

    evaluations: int = 0
    usd: float = 0.0


class UsageFile:
    """What all users of a host's services have used.

    Args:
        path: The file, made at its first use.

    Raises:
        StoreUnavailableError: it cannot be used; also from methods.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._database: sqlite3.Connection | None = None

    @classmethod
    def beside(cls, tokens: Path) -> "UsageFile":
        """Return the one that belongs to a file of tokens."""
        return cls(tokens.with_name(f"{tokens.name}.usage.db"))

    def of(self, user: str) -> Usage:
        """Return what a user has used."""
        if self._database is None and not self._path.exists():
            return Usage()
        with self._open() as database:
            row = database.execute(
                "SELECT evaluations, usd FROM usage WHERE user = ?", (user,)
            ).fetchone()
        return Usage() if row is None else Usage(evaluations=row[0], usd=row[1])

    def add_evaluation(self, user: str, most: int) -> bool:
        """Count one evaluation, unless `most` are counted; return whether it was."""
        with self._open() as database:
            database.execute("INSERT OR IGNORE INTO usage VALUES (?, 0, 0)", (user,))
            changed = database.execute(
                "UPDATE usage SET evaluations = evaluations + 1 WHERE user = ? AND evaluations < ?",
                (user, most),
            )
            return changed.rowcount == 1

    def take_back(self, user: str) -> None:
        """Count one evaluation less."""
        with self._open() as database:
            database.execute(
                "UPDATE usage SET evaluations = MAX(evaluations - 1, 0) WHERE user = ?", (user,)
            )

    def add_usd(self, user: str, usd: float) -> None:
        """Count what models cost."""
        with self._open() as database:
            database.execute("INSERT OR IGNORE INTO usage VALUES (?, 0, 0)", (user,))
            database.execute("UPDATE usage SET usd = usd + ? WHERE user = ?", (usd, user))

    def reset(self, user: str) -> None:
        """Begin anew for a user."""
        with self._open() as database:
            database.execute("DELETE FROM usage WHERE user = ?", (user,))

    def close(self) -> None:
        """Close the file."""
        if self._database is not None:
            self._database.close()
            self._database = None

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            if self._database is None:
                self._database = self._made()
            with self._database:
                yield self._database
        except (sqlite3.Error, OSError) as error:
            raise StoreUnavailableError(
                f"the usage of quotas in {self._path} cannot be read or written: {error}"
            ) from error

    def _made(self) -> sqlite3.Connection:
        os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))  # its owner's alone
        database = sqlite3.connect(self._path, timeout=_BUSY_S)
        database.execute("PRAGMA journal_mode = WAL")
        database.execute(
            "CREATE TABLE IF NOT EXISTS usage"
            " (user TEXT PRIMARY KEY, evaluations INTEGER NOT NULL, usd REAL NOT NULL)"
        )
        return database
