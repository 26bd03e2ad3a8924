"""One loop alone works on a run: it holds the run's lease and keeps it while it works."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Final

from kernel_foundry.domain.archive import LEASE_SECONDS, LeaseHolder, RunBudget
from kernel_foundry.errors import KernelFoundryError, RunHeldError
from kernel_foundry.ports import Archive

_RENEWAL_SECONDS: Final = LEASE_SECONDS / 3
"""Two renewals may fail before the lease runs out."""


@contextlib.asynccontextmanager
async def held(
    archive: Archive, run: str, holder: LeaseHolder, budget: Callable[[], RunBudget]
) -> AsyncIterator[None]:
    """Hold a run's lease while the block goes on; who finishes the run frees it.

    Args:
        archive: Has the run.
        run: Its name.
        holder: The loop.
        budget: Returns what the loop may use, from then on.

    Raises:
        RunHeldError: another loop works on the run; also from the block, when one took the run
            over while this process did not run.
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
                continue  # a store that is away for a moment; whoever tells it learns of the rest

    renewal = asyncio.create_task(renew())
    try:
        yield
    except asyncio.CancelledError:
        if lost is None:
            raise
        worker.uncancel()
        raise lost from None
    finally:
        renewal.cancel()
