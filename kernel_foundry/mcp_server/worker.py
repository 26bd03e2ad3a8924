"""The SDK's synchronous `Foundry` behind an asynchronous server: one thread makes all its calls."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

from mcp.server.mcpserver import Context

from kernel_foundry.mcp_server.allowance import Allowance, Allowances
from kernel_foundry.sdk.client import Foundry, connect
from kernel_foundry.sdk.services import Targets

T = TypeVar("T")

_NOTICE_S: Final = 2.0
"""Seconds between progress notifications of a call."""


class Worker:
    """Calls a `Foundry` in one thread that lives as long as the server does.

    The evaluator's processes end with the thread that started them, so that it is always the same
    one. It takes calls in turn: times are measured on a machine that does one thing.

    Args:
        targets: Where the services are.
        allowances: Whose seconds the calls use.
        notice_s: Seconds between notices of progress.
    """

    def __init__(
        self, targets: Targets, allowances: Allowances, *, notice_s: float = _NOTICE_S
    ) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="foundry")
        self._targets = targets
        self._allowances = allowances
        self._notice_s = notice_s
        self._foundry: Foundry | None = None

    async def call(
        self, context: Context[Any, Any], work: Callable[[Foundry], T], *, gives_notice: bool = True
    ) -> T:
        """Return what `work` gives.

        Args:
            context: Of the tool, resource or prompt that is called.
            work: Its part that needs the services.
            gives_notice: Whether its caller is told of the seconds that it takes; not where
                `work` tells of its own progress.

        Raises:
            InvalidArgumentError: the caller's time is used up.
            KernelFoundryError: `work` raised one.
        """
        allowance = self._allowances.of(context)
        future = asyncio.get_running_loop().run_in_executor(
            self._thread, self._work, work, allowance
        )
        if not gives_notice:
            return await future
        asked_s = time.monotonic()
        try:
            while not (await asyncio.wait((future,), timeout=self._notice_s))[0]:
                passed_s = time.monotonic() - asked_s
                await context.report_progress(passed_s, message=f"{passed_s:.0f} s")
            return await future
        finally:
            future.cancel()  # where its caller does not wait for it any more

    async def close(self) -> None:
        """End the evaluator's processes and the thread."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._close)
        self._thread.shutdown()

    def _work(self, work: Callable[[Foundry], T], allowance: Allowance) -> T:
        started_s = time.monotonic()
        try:
            allowance.check_time()
            if self._foundry is None:
                self._foundry = connect(self._targets)
            return work(self._foundry)
        finally:
            allowance.used_seconds += time.monotonic() - started_s

    def _close(self) -> None:
        if self._foundry is not None:
            self._foundry.close()
