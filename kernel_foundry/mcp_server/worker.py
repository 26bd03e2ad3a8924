"""The SDK's synchronous `Foundry` behind an asynchronous server: one thread makes all its calls."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from kernel_foundry.mcp_server.allowance import Allowance
from kernel_foundry.sdk.client import Foundry, connect
from kernel_foundry.sdk.services import Targets

T = TypeVar("T")


class Worker:
    """Calls a `Foundry` in one thread that lives as long as the server does.

    The evaluator's processes end with the thread that started them, so that it is always the same
    one. It takes calls in turn: times are measured on a machine that does one thing.

    Args:
        targets: Where the services are.
        allowance: Whose seconds the calls use.
    """

    def __init__(self, targets: Targets, allowance: Allowance) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="foundry")
        self._targets = targets
        self._allowance = allowance
        self._foundry: Foundry | None = None

    async def call(self, work: Callable[[Foundry], T]) -> T:
        """Return what `work` gives.

        Raises:
            InvalidArgumentError: the time is used up.
            KernelFoundryError: it raised one.
        """
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._work, work)

    async def close(self) -> None:
        """End the evaluator's processes and the thread."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._close)
        self._thread.shutdown()

    def _work(self, work: Callable[[Foundry], T]) -> T:
        started_s = time.monotonic()
        try:
            self._allowance.check_time()
            if self._foundry is None:
                self._foundry = connect(self._targets)
            return work(self._foundry)
        finally:
            self._allowance.used_seconds += time.monotonic() - started_s

    def _close(self) -> None:
        if self._foundry is not None:
            self._foundry.close()
