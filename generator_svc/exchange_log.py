"""Every exchange with a model, as one JSON file, found by the digest of its prompt.

Content-addressed: the same exchange is the same file, so writing is idempotent and several writers
need no lock. The store knows which exchanges a run made.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from kernel_foundry.domain.digest import content_digest
from kernel_foundry.domain.exchange import Exchange, prompt_digest
from kernel_foundry.domain.plain import PlainError, from_json, to_json
from kernel_foundry.errors import CorruptArchiveError, StoreUnavailableError
from kernel_foundry.whole_file import replace_file


class ExchangeLog:
    """A folder of exchanges.

    Args:
        folder: Made when the first exchange is recorded.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def record(self, exchange: Exchange) -> str:
        """Store `exchange` and return its name; readers see the whole file or none.

        Raises:
            StoreUnavailableError: the folder cannot be written.
        """
        try:
            return await asyncio.to_thread(self._write, exchange)
        except OSError as error:
            raise StoreUnavailableError(
                f"cannot store an exchange under {self._folder}: {error}",
                folder=str(self._folder),
            ) from error

    async def named(self, name: str) -> Exchange:
        """Return the exchange that `record` gave that name.

        Raises:
            CorruptArchiveError: the file is gone, or is no exchange, or not the one of that name.
        """
        return await asyncio.to_thread(self._read_named, name)

    async def replies(self, digest: str) -> tuple[Exchange, ...]:
        """Return every stored exchange whose prompt has that digest, oldest first.

        Raises:
            CorruptArchiveError: a file is no exchange.
        """
        return await asyncio.to_thread(self._read_all, digest)

    async def remove(self, names: Iterable[str]) -> None:
        """Remove exchanges by the names that `record` gave.

        Raises:
            StoreUnavailableError: the folder cannot be written.
        """
        try:
            for name in names:
                await asyncio.to_thread(self._path(name).unlink, missing_ok=True)
        except OSError as error:
            raise StoreUnavailableError(
                f"cannot remove an exchange under {self._folder}: {error}",
                folder=str(self._folder),
            ) from error

    def _write(self, exchange: Exchange) -> str:
        name = _name(exchange)
        path = self._path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, to_json(exchange), mode=0o600, durable=True)
        return name

    def _read_named(self, name: str) -> Exchange:
        path = self._path(name)
        exchange = _read(path)
        if _name(exchange) != name:
            raise CorruptArchiveError(
                f"the exchange in {path} is not the one that was recorded: it was changed since",
                path=str(path),
            )
        return exchange

    def _read_all(self, digest: str) -> tuple[Exchange, ...]:
        folder = self._folder / digest[:2]
        exchanges = [_read(path) for path in folder.glob(f"{digest}.*.json")]
        return tuple(sorted(exchanges, key=lambda e: e.recorded_unix_s))

    def _path(self, name: str) -> Path:
        return self._folder / name[:2] / f"{name}.json"


def _name(exchange: Exchange) -> str:
    """Return the name: the prompt's digest, and one of everything else that was recorded."""
    rest = replace(exchange, messages=(), sequence=0)
    return f"{prompt_digest(exchange.messages)}.{content_digest(to_json(rest))[:16]}"


def _read(path: Path) -> Exchange:
    try:
        return from_json(Exchange, path.read_text("utf-8"))
    except FileNotFoundError as error:
        raise CorruptArchiveError(
            f"the exchange {path} is gone: restore it from a backup of the exchanges' folder",
            path=str(path),
        ) from error
    except (PlainError, UnicodeDecodeError) as error:
        raise CorruptArchiveError(f"{path} is not an exchange: {error}", path=str(path)) from error
    except OSError as error:
        raise StoreUnavailableError(f"cannot read {path}: {error}", path=str(path)) from error
