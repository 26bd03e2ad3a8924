"""Folders for a while: all of a process lie in one, which goes with the process however it ends.

A process holds a lock on its folder. The kernel gives the lock up with the process, so whoever
starts next can tell what was left behind, also from another container that shares the folder.
"""

import atexit
import fcntl
import os
import shutil
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_PREFIX: Final = "kfoundry-"
_making = threading.Lock()
_own: dict[int, Path] = {}
"""This process's folder, by its id: a fork makes one of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leftover:
    """A folder whose process is gone."""

    path: Path
    size_bytes: int


def scratch_folder(purpose: str) -> "tempfile.TemporaryDirectory[str]":
    """Return a new empty folder; it goes with its object, at the latest with this process."""
    return tempfile.TemporaryDirectory(prefix=f"{purpose}-", dir=_own_folder())


def leftovers() -> tuple[Leftover, ...]:
    """Return what processes of this user left behind in the temporary folder."""
    found = []
    for path in _folders():
        lock = _lock(path, blocking=False)
        if lock is not None:
            os.close(lock)
            found.append(Leftover(path=path, size_bytes=folder_bytes(path)))
    return tuple(found)


def remove_leftovers() -> None:
    """Remove what processes of this user left behind in the temporary folder."""
    for path in _folders():
        lock = _lock(path, blocking=False)
        if lock is not None:
            # Under the lock: a process that has just made its folder waits, and makes another.
            shutil.rmtree(path, ignore_errors=True)
            os.close(lock)


def folder_bytes(folder: Path) -> int:
    """Return what the files below `folder` take on disk; 0 when it is not there."""
    total = 0
    for parent, _folders_in_it, files in os.walk(folder):
        for name in files:
            try:
                total += os.lstat(os.path.join(parent, name)).st_blocks * 512  # noqa: PTH118  a walk of thousands
            except FileNotFoundError:
                continue  # a cache is written to while it is measured
    return total


def _own_folder() -> Path:
    with _making:
        own = _own.get(os.getpid())
        while own is None or not own.exists():
            own = Path(tempfile.mkdtemp(prefix=_PREFIX))
            _lock(own, blocking=True)  # held as long as this process lives
            _own.clear()
            _own[os.getpid()] = own
            atexit.register(remove_own)
        return own


def remove_own() -> None:
    """Remove this process's folder with all in it; done at its end, unless it is ended hard."""
    own = _own.get(os.getpid())
    if own is not None:
        shutil.rmtree(own, ignore_errors=True)


def _folders() -> list[Path]:
    found = []
    try:
        with os.scandir(tempfile.gettempdir()) as entries:
            for entry in entries:
                if entry.name.startswith(_PREFIX) and entry.is_dir(follow_symlinks=False):
                    is_ours = entry.stat(follow_symlinks=False).st_uid == os.getuid()
                    found += [Path(entry.path)] if is_ours else []
    except FileNotFoundError:
        return found  # another process removed one meanwhile
    return found


def _lock(path: Path, *, blocking: bool) -> int | None:
    """The descriptor that holds the lock on a folder; None: another process has it."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if blocking else fcntl.LOCK_NB))
    except OSError:
        os.close(descriptor)
        return None
    return descriptor
