"""Every exchange with a model, as one JSON file, found by the digest of its prompt.

Content-addressed: the same exchange is the same file, so writing is idempotent and several
writers need no lock. Knows nothing of what prompts mean.
"""

import asyncio
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from generator_svc.llm.interface import ChatMessage, FinishReason, prompt_digest
from kernel_foundry.domain.digest import content_digest
from kernel_foundry.domain.plain import PlainError, from_json, to_json
from kernel_foundry.domain.request import TokenUsage
from kernel_foundry.errors import CorruptArchiveError, StoreUnavailableError


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One prompt and one reply."""

    run: str
    asked: str
    """The model asked; `usage.model` is the one that answered."""
    seed: int
    """Of the proposal; structured models answer by it."""
    messages: tuple[ChatMessage, ...]
    reply: str
    finish: FinishReason
    usage: TokenUsage
    recorded_unix_s: float


class ExchangeLog:
    """A folder of exchanges.

    Args:
        folder: Made when the first exchange is recorded.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def record(self, exchange: Exchange) -> None:
        """Store `exchange`; readers see the whole file or none.

        Raises:
            StoreUnavailableError: the folder cannot be written.
        """
        try:
            await asyncio.to_thread(self._write, exchange)
        except OSError as error:
            raise StoreUnavailableError(
                f"cannot store an exchange under {self._folder}: {error}",
                folder=str(self._folder),
            ) from error

    async def replies(self, digest: str) -> tuple[Exchange, ...]:
        """Return every stored exchange whose prompt has that digest, oldest first.

        Raises:
            CorruptArchiveError: a file is no exchange.
        """
        return await asyncio.to_thread(self._read, digest)

    def _write(self, exchange: Exchange) -> None:
        digest = prompt_digest(exchange.messages)
        folder = self._folder / digest[:2]
        folder.mkdir(parents=True, exist_ok=True)
        rest = content_digest(exchange.run, exchange.asked, str(exchange.seed), exchange.reply)
        handle, temporary = tempfile.mkstemp(dir=folder, suffix=".tmp")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(to_json(exchange))
            Path(temporary).replace(folder / f"{digest}.{rest[:16]}.json")
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise

    def _read(self, digest: str) -> tuple[Exchange, ...]:
        folder = self._folder / digest[:2]
        exchanges = []
        for path in folder.glob(f"{digest}.*.json"):
            try:
                exchanges.append(from_json(Exchange, path.read_text("utf-8")))
            except PlainError as error:
                raise CorruptArchiveError(f"{path} is no exchange: {error}") from error
        return tuple(sorted(exchanges, key=lambda e: e.recorded_unix_s))
