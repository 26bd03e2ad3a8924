"""Sweeps in progress and just ended: their results, for whoever sends the same request again.

Threads emit; listeners in the event loop get every result from the first on.
"""

import asyncio
import threading
from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Final

from evaluator_svc.requests.listeners import Listeners
from kernel_foundry.domain.digest import content_digest
from kernel_foundry.domain.evaluation import Setting
from kernel_foundry.domain.plain import to_json
from kernel_foundry.domain.sweep import ConfigurationResult, SweepRequest

Emit = Callable[[ConfigurationResult], None]
RunSweep = Callable[[Emit, threading.Event], Awaitable[None]]
"""Runs a sweep: takes where its results go, and what says that nobody wants more of them."""

_REMEMBERED: Final = 32
"""Sweeps kept for calls that are retried."""


class Sweeps:
    """Starts sweeps and remembers those with a request id.

    Args:
        retry_seconds: How long one with an id goes on that nobody listens to.
    """

    def __init__(self, retry_seconds: float) -> None:
        self._retry_seconds = retry_seconds
        self._by_request: OrderedDict[str, _Stream] = OrderedDict()
        """By digest of the whole request: two clients may choose the same id."""
        self._running: set[_Stream] = set()

    async def results(
        self, request: SweepRequest, run: RunSweep
    ) -> AsyncGenerator[ConfigurationResult, None]:
        """Yield the results of a sweep, which `run` starts unless it is known already.

        One without a request id ends with its only listener.
        """
        key = content_digest(to_json(request)) if request.request_id else ""
        stream = self._by_request.get(key)
        if stream is None or stream.has_failed:
            stream = _Stream(
                run,
                self._retry_seconds if key else 0.0,
                forget=lambda: self._forget(key),
                ended=self._running.discard,
            )
            self._running.add(stream)
            if key:
                self._by_request[key] = stream
                while len(self._by_request) > _REMEMBERED:
                    self._by_request.popitem(last=False)
        with stream.listeners.one_more():
            async for result in stream.results():
                yield result

    def stop(self) -> None:
        """Let every sweep end soon, and at once what nobody listens to."""
        for stream in tuple(self._running):
            stream.stop()
            stream.listeners.stop_if_none()

    def _forget(self, key: str) -> None:
        self._by_request.pop(key, None)


class _Stream:
    """One sweep; made in the event loop."""

    def __init__(
        self,
        run: RunSweep,
        retry_seconds: float,
        *,
        forget: Callable[[], None],
        ended: "Callable[[_Stream], None]",
    ) -> None:
        self._ended = ended
        self._loop = asyncio.get_running_loop()
        self._stopped = threading.Event()
        self._results: list[ConfigurationResult] = []
        self._told: set[tuple[Setting, ...]] = set()
        self._changed = asyncio.Event()
        self._error: Exception | None = None
        self._has_ended = False
        task = asyncio.create_task(self._run(run))
        self.listeners = Listeners(task, retry_seconds, forget)

    @property
    def has_failed(self) -> bool:
        """True when a failure of our own ended it."""
        return self._error is not None

    def stop(self) -> None:
        """Let it end soon; what was found stays."""
        self._stopped.set()

    async def results(self) -> AsyncGenerator[ConfigurationResult, None]:
        """Yield every result, those that are there already and those that come."""
        count = 0
        while True:
            while count < len(self._results):
                count += 1
                yield self._results[count - 1]
            if self._has_ended:
                break
            await self._changed.wait()
        if self._error is not None:
            raise self._error

    async def _run(self, run: RunSweep) -> None:
        try:
            await run(self._emit, self._stopped)
        except Exception as error:  # noqa: BLE001  a bug reaches the listeners, not the loop
            self._error = error
        finally:
            self._has_ended = True
            self._ended(self)
            self._tell()

    def _emit(self, result: ConfigurationResult) -> None:
        """Take a result from any thread."""
        self._loop.call_soon_threadsafe(self._add, result)

    def _add(self, result: ConfigurationResult) -> None:
        # Another device that takes a sweep over begins anew: what was told stays as it was.
        if result.configuration not in self._told:
            self._told.add(result.configuration)
            self._results.append(result)
            self._tell()

    def _tell(self) -> None:
        waited_for, self._changed = self._changed, asyncio.Event()
        waited_for.set()
