"""The rows of a run as they come: read once, and followed while anybody looks."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final

from kernel_foundry.domain.archive import RunState
from kernel_foundry.domain.best import Leader
from kernel_foundry.ports import Archive
from kernel_foundry.sdk.report.page_objects import page_json, row_object

CHUNK: Final = 250
"""Most rows in one event, so that a page draws the first ones while others are read."""

QUIET_S: Final = 15.0
"""After as long without an event a reader gets an empty one: a broken tunnel is noticed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedEvent:
    """Rows behind those that a reader has, or the end of the run; neither: nothing happened."""

    sequence: int
    """Of the last evaluation that the reader has now."""
    rows: tuple[str, ...] = ()
    """Each the JSON of a row, in order."""
    state: RunState | None = None
    """The run's; only in the last event."""


class RunFeed:
    """One run, for any number of readers.

    Args:
        archive: Where it is.
        run: Its name.
    """

    def __init__(self, archive: Archive, run: str) -> None:
        self._archive = archive
        self._run = run
        self._rows: list[str] = []
        self._leader = Leader()
        self._state: RunState | None = None
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._reader_count = 0

    async def events(self, after: int) -> AsyncGenerator[FeedEvent, None]:
        """Yield the rows behind `after`, then new ones as they come, and the end of the run.

        Raises:
            KernelFoundryError: the archive fails.
        """
        self._reader_count += 1
        try:
            self._begin()
            while True:
                changed = self._changed
                rows = tuple(self._rows[after : after + CHUNK])
                after += len(rows)
                if rows:
                    yield FeedEvent(sequence=after, rows=rows)
                elif self._state is not None:
                    yield FeedEvent(sequence=after, state=self._state)
                    return
                elif self._task is None or self._task.done():
                    if self._task is not None:
                        self._task.result()  # raises what ended it
                    return
                else:
                    try:
                        await asyncio.wait_for(changed.wait(), QUIET_S)
                    except TimeoutError:
                        yield FeedEvent(sequence=after)
        finally:
            self._reader_count -= 1
            if not self._reader_count:
                await self.close()

    @property
    def is_read(self) -> bool:
        """Whether anybody reads it now."""
        return self._reader_count > 0

    async def close(self) -> None:
        """Follow the run no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))
            self._task = None

    def _begin(self) -> None:
        if self._task is None or self._task.done():
            self._state = None
            self._task = asyncio.create_task(self._follow())
            self._task.add_done_callback(lambda _task: self._ring())

    async def _follow(self) -> None:
        async with aclosing(self._archive.watch(self._run, after=len(self._rows))) as events:
            async for event in events:
                if event.archived is not None:
                    best = self._leader.add(event.archived)
                    self._rows.append(page_json(row_object(event.archived, best)))
                self._state = event.state
                self._ring()

    def _ring(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
