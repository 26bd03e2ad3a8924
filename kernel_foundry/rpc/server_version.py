"""Which version a service is, in the trailing metadata of its answers; what clients make of it.

Minor versions may change messages, by new fields alone; patches change none.
"""

import importlib.metadata
from collections.abc import Iterable
from functools import cache
from typing import Final

VERSION_KEY: Final = "kernel-foundry-version"
"""Metadata of every answer, also of an error."""


@cache
def own_version() -> str:
    """Return such as "0.1.0"; "" for a source tree that is not installed."""
    try:
        return importlib.metadata.version("kernel-foundry")
    except importlib.metadata.PackageNotFoundError:
        return ""


def version_header() -> tuple[str, str]:
    """Return the trailing metadata that a service adds to an answer."""
    return VERSION_KEY, own_version()


def told_version(metadata: Iterable[tuple[str, str | bytes]]) -> str:
    """Return the version in an answer's trailing metadata; "" where it says none."""
    return next((str(value) for key, value in metadata if key == VERSION_KEY), "")


def difference(told: str) -> str:
    """Return a warning if a service's major or minor version is another; else ""."""
    own = own_version()
    if not told or not own or told.split(".")[:2] == own.split(".")[:2]:
        return ""
    return (
        f"it is version {told[:40]}, and this is {own}: fields that one of them lacks are ignored"
    )
