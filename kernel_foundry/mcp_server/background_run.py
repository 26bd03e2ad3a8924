"""A run that goes on beside the tools' calls, in a thread with services of its own."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from kernel_foundry.errors import ShuttingDownError
from kernel_foundry.mcp_server.allowance import Allowance
from kernel_foundry.sdk.client import connect
from kernel_foundry.sdk.loop.budget import BudgetUse
from kernel_foundry.sdk.loop.progress import (
    AdmissionEvent,
    Event,
    Listener,
    RunResult,
    SweepEvent,
    VerdictEvent,
)
from kernel_foundry.sdk.services import Services, Targets

Search = Callable[[Services, Listener], Coroutine[Any, Any, RunResult]]
"""Searches on services until its budget ends it."""


class BackgroundRun:
    """A run that was started and not waited for.

    Args:
        targets: Where its services are.
        search: Its loop.
        allowance: Of the caller who started it, and alone may end or steer it over this server.
    """

    def __init__(self, targets: Targets, search: Search, allowance: Allowance) -> None:
        self.allowance = allowance
        self._targets = targets
        self._search = search
        self._began: Future[str] = Future()
        self._loop: tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]] | None = None
        self._is_cancelled = False
        self._started_s = time.monotonic()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="run")
        self.used = BudgetUse()
        """The use of its budget that its loop last reported."""
        self.ended: Future[None] = self._thread.submit(self._work)
        """Done when the loop has ended; its exception is what ended it early, if anything did."""

    @property
    def seconds(self) -> float:
        """How long ago it was started."""
        return time.monotonic() - self._started_s

    @property
    def failure(self) -> str:
        """What ended it early; empty while it goes on, and when nothing did."""
        error = self.ended.exception() if self.ended.done() else None
        return "" if error is None else str(error)

    async def begin(self) -> str:
        """Return its name, once its task is admitted.

        Raises:
            ShuttingDownError: it was cancelled before.
            KernelFoundryError: it ended before; as `sdk.optimization.optimize`.
        """
        began, ended = asyncio.wrap_future(self._began), asyncio.wrap_future(self.ended)
        either: set[asyncio.Future[Any]] = {began, ended}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if began.done():
            return began.result()
        began.cancel()
        await ended
        raise ShuttingDownError("the run was cancelled before it began")

    @property
    def name(self) -> str:
        """Its name; empty before its task is admitted."""
        is_known = self._began.done() and not self._began.cancelled()
        return self._began.result() if is_known else ""

    async def wait(self, seconds: float) -> bool:
        """Wait until it has ended, so long at most; return whether it has."""
        return await asyncio.to_thread(self._has_ended, seconds)

    async def cancel(self) -> None:
        """End its loop, and wait until it has ended; what was judged is stored."""
        self._is_cancelled = True
        self._cancel_task()
        await asyncio.to_thread(self._thread.shutdown)

    def _has_ended(self, seconds: float) -> bool:
        try:
            self.ended.exception(timeout=seconds)
        except TimeoutError:
            return False
        return True

    def _cancel_task(self) -> None:
        if self._loop is not None and not self.ended.done():
            loop, task = self._loop
            loop.call_soon_threadsafe(task.cancel)

    def _work(self) -> None:
        with connect(self._targets) as foundry:
            try:
                foundry.with_services(self._searching)
            except asyncio.CancelledError:
                if not self._is_cancelled:
                    raise

    async def _searching(self, services: Services) -> None:
        task = asyncio.current_task()
        assert task is not None  # the runner runs it in one
        self._loop = (asyncio.get_running_loop(), task)
        if self._is_cancelled:
            raise asyncio.CancelledError
        await self._search(services, self._listen)

    def _listen(self, event: Event) -> None:
        if isinstance(event, AdmissionEvent):
            self._began.set_result(event.run.spec.name)
        if isinstance(event, AdmissionEvent | VerdictEvent | SweepEvent | RunResult):
            self.used = event.spent
