"""The usage of a host's services by users, in a file that all its services share."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import sqlalchemy as sa

from kernel_foundry.errors import StoreUnavailableError
from kernel_foundry.sql.engine import open_engine
from kernel_foundry.sql.failures import store_errors
from kernel_foundry.sql.migrate import SchemaLocation

_SCHEMA: Final = SchemaLocation(head="0001", migrations="kernel_foundry.rpc:usage_migrations")
_BUSY_S: Final = 2
"""How long a call waits for another service that counts."""

_USAGE: Final = sa.Table(
    "quota_usage",
    sa.MetaData(),
    sa.Column("user", sa.String(80), primary_key=True),
    sa.Column("evaluations", sa.Integer, nullable=False),
    sa.Column("usd", sa.Float, nullable=False),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a user has used."""

    evaluations: int = 0
    usd: float = 0.0


class UsageFile:
    """The usage of a host's services by all users.

    Args:
        path: The file, made at its first use, for its owner alone.

    Raises:
        StoreUnavailableError: it cannot be used; also from methods.
        CorruptArchiveError: it is no such file; also from methods.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._engine: sa.Engine | None = None

    @classmethod
    def beside(cls, tokens: Path) -> "UsageFile":
        """Return the one that belongs to a file of tokens."""
        return cls(tokens.with_name(f"{tokens.name}.usage.db"))

    def of(self, user: str) -> Usage:
        """Return what a user has used."""
        if self._engine is None and not self._path.exists():
            return Usage()
        with self._open() as database:
            row = database.execute(sa.select(_USAGE).where(_USAGE.c.user == user)).first()
        return Usage() if row is None else Usage(evaluations=row.evaluations, usd=row.usd)

    def add_evaluation(self, user: str, most: int) -> bool:
        """Count one evaluation, unless `most` are counted; return whether it was."""
        with self._open() as database:
            counted = database.execute(
                _row(database, user)
                .where(_USAGE.c.evaluations < most)
                .values(evaluations=_USAGE.c.evaluations + 1)
            )
            return counted.rowcount == 1

    def take_back(self, user: str) -> None:
        """Count one evaluation less."""
        with self._open() as database:
            database.execute(
                _row(database, user)
                .where(_USAGE.c.evaluations > 0)
                .values(evaluations=_USAGE.c.evaluations - 1)
            )

    def add_usd(self, user: str, usd: float) -> None:
        """Count what models cost."""
        with self._open() as database:
            database.execute(_row(database, user).values(usd=_USAGE.c.usd + usd))

    def reset(self, user: str) -> None:
        """Begin anew for a user."""
        with self._open() as database:
            database.execute(_USAGE.delete().where(_USAGE.c.user == user))

    def close(self) -> None:
        """Close the file."""
        if self._engine is not None:
            self._engine.dispose()
            self._engine = None

    @contextmanager
    def _open(self) -> Iterator[sa.Connection]:
        if self._engine is None:
            try:
                self._path.touch(mode=0o600)
            except OSError as error:
                raise StoreUnavailableError(
                    f"the usage of quotas in {self._path} cannot be written: {error.strerror}"
                ) from error
            self._engine, _ = open_engine(f"sqlite:///{self._path}?timeout={_BUSY_S}", _SCHEMA)
        with store_errors(str(self._path)), self._engine.begin() as connection:
            yield connection


def _row(database: sa.Connection, user: str) -> sa.Update:
    """Return an update of a user's row, which is made if it is not there: there is one writer."""
    own = _USAGE.c.user == user
    if database.execute(sa.select(_USAGE.c.user).where(own)).first() is None:
        database.execute(_USAGE.insert(), {"user": user, "evaluations": 0, "usd": 0.0})
    return _USAGE.update().where(own)
