"""The event stream of a run: its evaluations so far, new ones, its end.

Pages are read at the reader's own pace, so that a slow reader holds no more than one page.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from kernel_foundry.domain.archive import ArchivedEvaluation, RunEvent, RunState

PAGE: Final = 20
"""Evaluations in memory for one reader; a large one takes some hundred kilobytes."""

POLL_S: Final = 0.5
"""How long evaluations that other processes add may stay unseen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """The state of a run after a sequence number."""

    archived: Sequence[ArchivedEvaluation]
    """The first evaluations after it, in order; empty if there are none."""
    state: RunState
    """As it was before `archived` was read, so that an ended run's page is complete."""
    evaluation_count: int
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
        """Return the event that the next ring sets. Call it before reading, to miss no ring."""
        return self._rung


async def follow(
    read: Callable[[int], Awaitable[Page]], bell: Bell, *, after: int
) -> AsyncGenerator[RunEvent, None]:
    """Yield evaluations with a sequence above `after`, then new ones as they come.

    Ends with the run's state once it is no longer running.

    Args:
        read: Returns the page behind a sequence number.
        bell: Rung by this process's own changes; those of others are polled for.
        after: Where to start.
    """
    while True:
        rung = bell.listen()
        page = await read(after)
        for archived in page.archived:
            after = archived.sequence
            yield RunEvent(sequence=after, archived=archived)
        if page.archived:
            continue
        if page.state is not RunState.RUNNING:
            yield RunEvent(sequence=page.evaluation_count, state=page.state)
            return
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(rung.wait(), POLL_S)
