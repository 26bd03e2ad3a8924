"""Whether anybody still waits for what a thread works on.

A thread cannot be cancelled. It looks here whenever it waits for a process with a candidate.
"""

import contextlib
import threading
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Final

LOOK_SECONDS: Final = 0.25
"""How often whoever waits looks."""


class CallStoppedError(Exception):
    """Nobody waits for what this thread works on."""


class CallStop:
    """Stops the work of one call, on whichever threads of its context it goes on."""

    def __init__(self) -> None:
        self._is_set = threading.Event()

    def set(self) -> None:
        """Let the work end at its next look."""
        self._is_set.set()

    def check(self) -> None:
        """End here what nobody waits for.

        Raises:
            CallStoppedError: it was stopped.
        """
        if self._is_set.is_set():
            raise CallStoppedError

    @contextlib.contextmanager
    def in_force(self) -> Iterator[None]:
        """Let `check_call` look at this one in the block."""
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)


_NEVER: Final = CallStop()
_current: ContextVar[CallStop] = ContextVar("call_stop", default=_NEVER)


def check_call() -> None:
    """End here the work of a call that was stopped; raises as `CallStop.check`."""
    _current.get().check()
