"""One task of a suite: as a task file of ours, or with the reason why it cannot be one."""

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

_LONGEST_NAME: Final = 64
"""Characters; a task's name may have 80, and files derived from it add some."""
_DIGEST_DIGITS: Final = 8
_ENDS_IN_DIGEST: Final = re.compile(rf"_[0-9a-fA-F]{{{_DIGEST_DIGITS}}}$")


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportEntry:
    """One entry of a suite."""

    source: str
    """Where it stands: a path within the suite, with a line or a part of the file after it."""
    name: str
    """What the suite calls it; `file_names` makes a name of a file of it."""
    reference: str = field(default="", repr=False)
    """The task file's text; empty if it cannot be imported."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What stands in the sidecar, by its keys."""
    reason: str = ""
    """Why no task file represents it; empty if one does."""
    notes: tuple[str, ...] = ()
    """What the task file does not keep of it."""


class NotRepresentableError(Exception):
    """An entry that no task file represents; the message says why."""


def file_names(entries: Iterable[ImportEntry]) -> list[str]:
    """Return a name for each entry: letters, digits and `_`, no two alike in any case.

    A name depends on the entry and on those that are called like it, never on its place in the
    list: one that several have ends in a digest of where the entry stands.
    """
    listed = list(entries)
    plain = [_plain(entry.name) for entry in listed]
    counts: dict[str, int] = {}
    for name in plain:
        counts[name.lower()] = counts.get(name.lower(), 0) + 1
    return [
        name
        if counts[name.lower()] == 1 and not _ENDS_IN_DIGEST.search(name)
        else f"{name}_{_digest(entry)}"
        for entry, name in zip(listed, plain, strict=True)
    ]


def _plain(name: str) -> str:
    text = re.sub(r"[^A-Za-z0-9]+", "_", name[: 4 * _LONGEST_NAME]).strip("_")
    return text[:_LONGEST_NAME] or "task"


def _digest(entry: ImportEntry) -> str:
    encoded = f"{entry.source}\n{entry.name}".encode("utf-8", "surrogatepass")
    return hashlib.sha256(encoded).hexdigest()[:_DIGEST_DIGITS]
