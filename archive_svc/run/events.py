"""The event stream of a run: what was told, what is told, its end.

Pages are read at the reader's own pace, so that a slow reader holds no more than one page.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from kernel_foundry.domain.archive import RunEvent, RunState, ToldEvaluation

PAGE: Final = 20
"""Told evaluations held for one reader; a large one takes some hundred kilobytes."""

POLL_S: Final = 0.5
"""How long the tells of other processes may stay unseen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What a run looks like behind a sequence number."""

    told: Sequence[ToldEvaluation]
    """The first told evaluations behind it, in order; empty when there are none."""
    state: RunState
    """As it was before `told` was read, so that an ended run's page is complete."""
    told_count: int
    """As `state`."""


class Bell:
    """Wakes all readers when something may have changed; belongs to one event loop."""

    def __init__(self) -> None:
        self._rung = asyncio.Event()

    def ring(self) -> None:
        """Wake whoever listens."""
        self._rung.set()
        self._rung = asyncio.Event()

    def listen(self) -> asyncio.Event:
        """Return what the next ring sets: ask before reading, so that no ring is missed."""
        return self._rung


async def follow(
    read: Callable[[int], Awaitable[Page]], bell: Bell, *, after: int
) -> AsyncGenerator[RunEvent, None]:
    """Yield what was told with a sequence above `after`, then what is told as it comes.

    Ends with the run's state once it is no longer running.

    Args:
        read: Returns the page behind a sequence number.
        bell: Rung by this process's own changes; those of others are polled for.
        after: Where to start.
    """
    while True:
        rung = bell.listen()
        page = await read(after)
        for told in page.told:
            after = told.sequence
            yield RunEvent(sequence=after, told=told)
        if page.told:
            continue
        if page.state is not RunState.RUNNING:
            yield RunEvent(sequence=page.told_count, state=page.state)
            return
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(rung.wait(), POLL_S)
