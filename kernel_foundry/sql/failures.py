"""The database's failures as ours, distinguished by the database's own codes."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError

from kernel_foundry.errors import CorruptArchiveError, StoreUnavailableError

_ADVICE: Final = {
    "SQLITE_BUSY": "another process keeps it locked: stop that one, or try again",
    "SQLITE_LOCKED": "another process keeps it locked: stop that one, or try again",
    "55P03": "another process keeps the run locked: stop that one, or try again",
    "SQLITE_FULL": "there is no space left: free some, or choose another store",
    "53100": "there is no space left: free some on the server's disk",
    "SQLITE_IOERR": "its disk fails or is full: see to it, or choose another store",
    "SQLITE_READONLY": "it is read-only: mend its permissions, or choose another",
    "42501": "the server's user may not do that: mend its permissions",
}
"""By SQLite's name of an error, without what it adds for the case, or PostgreSQL's SQLSTATE."""

_OTHERWISE: Final = "see that it can be reached, or choose another one"


@contextmanager
def store_errors(shown_url: str) -> Iterator[None]:
    """Turn the database's errors into ours. What was written before is there in any case.

    Args:
        shown_url: The store's URL without its password.

    Raises:
        StoreUnavailableError: locked, full, unreachable, read-only, not permitted.
        CorruptArchiveError: any other: not a database, malformed, schema differs.
    """
    try:
        yield
    except DBAPIError as error:
        advice = _advice(error.orig)
        if advice or isinstance(error, OperationalError | InterfaceError):
            raise StoreUnavailableError(
                f"the store {shown_url} cannot be used now: {_line(error)}; {advice or _OTHERWISE}",
                url=shown_url,
            ) from error
        raise CorruptArchiveError(
            f"the store {shown_url} cannot be read: {_line(error)}; move it away to start anew, or "
            "choose another one",
            url=shown_url,
        ) from error


def _advice(cause: BaseException | None) -> str:
    code = getattr(cause, "sqlite_errorname", None) or getattr(cause, "sqlstate", None) or ""
    return next((advice for known, advice in _ADVICE.items() if code.startswith(known)), "")


def _line(error: DBAPIError) -> str:
    """The driver's message; PostgreSQL's goes over several lines."""
    return " ".join(str(error.orig).split())
