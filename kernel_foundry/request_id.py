"""The id of the request that is being worked on, for lines of a log."""

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

_current: ContextVar[str] = ContextVar("request_id", default="")


def current_request_id() -> str:
    """Return the id that the caller gave; "" for none."""
    return _current.get()


@contextlib.contextmanager
def working_on(request_id: str) -> Iterator[None]:
    """Say whose work the block is, and the threads and tasks that it begins."""
    token = _current.set(request_id)
    try:
        yield
    finally:
        _current.reset(token)
