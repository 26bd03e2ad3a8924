"""The queue between those who propose candidates and those who judge them."""

import asyncio
from typing import Generic, TypeVar

T = TypeVar("T")


class ProposalQueue(Generic[T]):
    """A queue of several producers and consumers, with one end for all.

    Args:
        producers: When the last of them has ended, what waits is still handed out.
        consumers: No more proposals than these wait.
    """

    def __init__(self, *, producers: int, consumers: int) -> None:
        self._producers = producers
        self._consumers = consumers
        self._queue: asyncio.Queue[T | None] = asyncio.Queue()
        # What waits grows old: it was made without knowing what is being judged now.
        self._room = asyncio.Semaphore(consumers)

    async def put(self, proposal: T) -> None:
        """Add a proposal; waits while as many wait as there are consumers."""
        await self._room.acquire()
        self._queue.put_nowait(proposal)

    async def take(self) -> T | None:
        """Return the next proposal, or None when there is no more to come."""
        proposal = await self._queue.get()
        if proposal is not None:
            self._room.release()
        return proposal

    def producer_ended(self) -> None:
        """Note that one of the producers makes no more."""
        self._producers -= 1
        if self._producers == 0:
            self.end()

    def end(self) -> None:
        """Let every consumer end once what waits is taken; may be called again."""
        for _ in range(self._consumers):
            self._queue.put_nowait(None)
