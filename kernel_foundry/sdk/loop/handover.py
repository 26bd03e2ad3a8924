"""Hands work from those who make it to those who take it, with little waiting in between."""

import asyncio
from typing import Generic, TypeVar

T = TypeVar("T")


class Handover(Generic[T]):
    """A queue with several makers and takers and one end.

    Args:
        makers: How many make; when the last has ended, what waits is still handed out.
        takers: How many take.
    """

    def __init__(self, *, makers: int, takers: int) -> None:
        self._makers = makers
        self._takers = takers
        self._queue: asyncio.Queue[T | None] = asyncio.Queue()
        # What waits grows old: it was made without knowing what is being judged now.
        self._room = asyncio.Semaphore(takers)

    async def put(self, item: T) -> None:
        """Hand `item` over; waits while as many wait as there are takers."""
        await self._room.acquire()
        self._queue.put_nowait(item)

    async def take(self) -> T | None:
        """Return the next item, or None when there is no more to come."""
        item = await self._queue.get()
        if item is not None:
            self._room.release()
        return item

    def maker_ended(self) -> None:
        """Note that one of the makers makes no more."""
        self._makers -= 1
        if self._makers == 0:
            self.end()

    def end(self) -> None:
        """Let every taker end once what waits is taken; may be called again."""
        for _ in range(self._takers):
            self._queue.put_nowait(None)
