"""Who waits for a call that may be repeated: with nobody for some seconds, it is stopped."""

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from typing import Any, Final

RETRY_SECONDS: Final = 10.0
"""How long a call with a request id goes on by itself: one whose connection broke is repeated
meanwhile (`rpc.connection.RetryPolicy` takes 3 s). From here, a call that was cancelled and one
that lost its connection look the same."""


class Listeners:
    """The listeners of one task; used in its event loop.

    Args:
        task: What they wait for. It is cancelled when none is left.
        seconds: How long it goes on without any.
        forget: Called before it is cancelled: whoever asks afterwards gets another one.
    """

    def __init__(
        self, task: "asyncio.Future[Any]", seconds: float, forget: Callable[[], None]
    ) -> None:
        self._task = task
        self._seconds = seconds
        self._forget = forget
        self._count = 0
        self._end: asyncio.TimerHandle | None = None

    @contextlib.contextmanager
    def one_more(self) -> Iterator[None]:
        """Count a listener in the block."""
        self._count += 1
        if self._end is not None:
            self._end.cancel()
            self._end = None
        try:
            yield
        finally:
            self._count -= 1
            if not self._count and not self._task.done():
                loop = asyncio.get_running_loop()
                self._end = loop.call_later(self._seconds, self.stop_if_none)

    def stop_if_none(self) -> None:
        """Stop the task now if nobody waits for it."""
        if not self._count and not self._task.done():
            self._forget()
            self._task.cancel()
