"""The generator's database: opened at its first use, written in transactions by one thread.

Every write is on disk when it returns. Several processes may use one database at once. Knows
nothing of what the tables mean; each has a file of its own beside this one.
"""

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import sqlalchemy as sa

from generator_svc.store.schema import SCHEMA
from kernel_foundry.sql.engine import open_engine
from kernel_foundry.sql.failures import store_errors

T = TypeVar("T")


class GeneratorStore:
    """One database.

    Args:
        url: `sqlite:////path/to/generator.db` or `postgresql://user@host/database`.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="generator-store")
        self._engine: sa.Engine | None = None
        self._shown_url = ""

    @property
    def url(self) -> str:
        """Where it is, as it was given."""
        return self._url

    async def read(self, work: Callable[[sa.Connection], T]) -> T:
        """Return the result of `work`, which only reads.

        Raises:
            StoreUnavailableError, CorruptArchiveError: as `open_engine` and `store_errors`.
        """
        return await self._run(work, is_reader=True)

    async def write(self, work: Callable[[sa.Connection], T]) -> T:
        """Do `work` in one transaction and return its result; raises as `read`."""
        return await self._run(work, is_reader=False)

    async def close(self) -> None:
        """Close the database; what was written is there."""
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._thread, self._dispose)
        self._thread.shutdown()

    async def _run(self, work: Callable[[sa.Connection], T], *, is_reader: bool) -> T:
        loop = asyncio.get_running_loop()
        context = contextvars.copy_context()  # which says who calls
        return await loop.run_in_executor(
            self._thread, context.run, self._transact, work, is_reader
        )

    def _transact(self, work: Callable[[sa.Connection], T], is_reader: bool) -> T:
        if self._engine is None:
            self._engine, self._shown_url = open_engine(self._url, SCHEMA)
        engine = self._engine.execution_options(reader=is_reader)
        with store_errors(self._shown_url), engine.begin() as connection:
            return work(connection)

    def _dispose(self) -> None:
        if self._engine is not None:
            self._engine.dispose()
            self._engine = None
