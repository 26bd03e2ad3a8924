"""One loop alone works on a run: it holds the run's lease until it finishes the run."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

from kernel_foundry.domain.archive import LEASE_SECONDS, LeaseHolder, Run, RunBudget, RunState
from kernel_foundry.errors import KernelFoundryError, RunHeldError
from kernel_foundry.ports import Archive

_RENEWAL_SECONDS: Final = LEASE_SECONDS / 3
"""Two renewals may fail before the lease runs out."""

Finish = Callable[[RunState], Awaitable[Run]]
"""Stores the state of a run, frees it, and returns it."""


@contextlib.asynccontextmanager
async def run_lease(
    archive: Archive, run: str, holder: LeaseHolder, budget: Callable[[], RunBudget]
) -> AsyncIterator[Finish]:
    """Hold a run's lease during the block; yield the function that finishes the run and frees it.

    Args:
        archive: Has the run.
        run: Its name.
        holder: The loop.
        budget: Returns what the loop may still use; stored at each renewal.

    Raises:
        RunHeldError: another loop works on the run. Also raised in the block, if another loop took
            the run over while this process was suspended.
    """
    await archive.hold_run(run, holder, budget())
    worker = asyncio.current_task()
    assert worker is not None  # a coroutine runs in one
    lost: RunHeldError | None = None

    async def renew() -> None:
        nonlocal lost
        while True:
            await asyncio.sleep(_RENEWAL_SECONDS)
            try:
                await archive.hold_run(run, holder, budget())
            except RunHeldError as error:
                lost = error
                worker.cancel()
                return
            except KernelFoundryError:
                continue  # a short outage is harmless; a lasting one shows at the next write

    renewal = asyncio.create_task(renew())

    async def finish(state: RunState) -> Run:
        # A later renewal would mark the run as held and running again.
        renewal.cancel()
        await asyncio.wait((renewal,))
        return await archive.finish_run(run, state, holder=holder)

    try:
        yield finish
    except asyncio.CancelledError:
        if lost is None:
            raise
        worker.uncancel()
        raise lost from None
    finally:
        renewal.cancel()
