"""Names of runs: they are keys of stores, parts of URLs and of paths."""

import re
from typing import Final

from kernel_foundry.errors import InvalidArgumentError

_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,200}")


def is_run_name(text: str) -> bool:
    """Return whether a run may be called so."""
    return _NAME.fullmatch(text) is not None


def check_run_named(text: str, field: str) -> None:
    """Refuse "" where a run is changed: it names the newest run only for what reads.

    Raises:
        InvalidArgumentError: it says which field names the run.
    """
    if not text:
        raise InvalidArgumentError(
            f"{field} is empty: what changes a run has to name it", field=field
        )


def check_run_name(text: str, field: str = "name") -> None:
    """Refuse what no run may be called.

    Raises:
        InvalidArgumentError: it says in which field and what is allowed.
    """
    if not is_run_name(text):
        shown = text if len(text) <= 200 else f"{text[:200]}…"
        raise InvalidArgumentError(
            f"run name {shown!r}: expected 1 to 200 of A-Z a-z 0-9 . _ -", field=field
        )
