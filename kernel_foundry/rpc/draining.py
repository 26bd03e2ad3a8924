"""Ends open streams when a service is about to stop."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import suppress
from typing import TypeVar

from kernel_foundry.errors import ShuttingDownError

T = TypeVar("T")


async def until_set(stop: asyncio.Event, items: AsyncIterator[T]) -> AsyncGenerator[T, None]:
    """Yield `items` until `stop` is set.

    Raises:
        ShuttingDownError: `stop` was set before the items ended.
    """
    stopping = asyncio.ensure_future(stop.wait())
    try:
        while True:
            coming = asyncio.ensure_future(anext(items))
            try:
                await asyncio.wait({coming, stopping}, return_when=asyncio.FIRST_COMPLETED)
                if not coming.done():
                    raise ShuttingDownError("the service is shutting down: ask again later")
                item = coming.result()
            except StopAsyncIteration:
                return
            finally:
                # Whoever leaves early must find `items` at rest, to close it.
                coming.cancel()
                with suppress(asyncio.CancelledError, StopAsyncIteration):
                    await coming
            yield item
    finally:
        stopping.cancel()
