"""Ends locked processes that hold more than they may, where the system's own limits do not count.

Inside bubblewrap the scratch folder is a file system of fixed size. Elsewhere Linux bounds
each file and no folder; and it counts no memory that a process made read-only after writing it. So
somebody has to look, several times a second: between two looks more is possible. A locked process
cannot remove what it wrote, and device code cannot hide it (`sandbox.landlock`).
"""

import os
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from evaluator_svc.processes.private_memory import private_bytes
from evaluator_svc.processes.process import ChildProcess

_LOOK_SECONDS: Final = 0.25
_MOST_ENTRIES: Final = 4096
_BLOCK_BYTES: Final = 512
"""What `st_blocks` counts, whatever the file system."""


class UsageWatch:
    """Looks after the processes that were handed to it."""

    def __init__(self, look_seconds: float = _LOOK_SECONDS) -> None:
        self._look_seconds = look_seconds
        self._watched: list[_Watched] = []
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._watch, name="usage-watch", daemon=True)
        self._thread.start()

    def add(self, process: ChildProcess, *, memory_bytes: int, scratch_bytes: int) -> None:
        """Look after a process until it is gone.

        Args:
            process: Its scratch folder, when it has one on the host, is looked at as well.
            memory_bytes: Most private memory that it may hold.
            scratch_bytes: Most that its scratch folder may hold.
        """
        with self._changed:
            self._watched.append(_Watched(process, memory_bytes, scratch_bytes))
            self._changed.notify_all()

    def close(self) -> None:
        """Stop looking."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join()

    def _watch(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or self._watched)
                self._changed.wait_for(lambda: self._closed, self._look_seconds)
                if self._closed:
                    return
                watched = tuple(self._watched)
            finished = [one for one in watched if not self._look(one)]
            with self._changed:
                self._watched = [one for one in self._watched if one not in finished]

    def _look(self, watched: "_Watched") -> bool:
        """Whether to go on looking at a process."""
        process = watched.process
        if not Path(f"/proc/{process.process_id}").exists():
            return False
        if process.scratch is not None and _exceeds(process.scratch.name, watched.scratch_bytes):
            most = watched.scratch_bytes >> 20
            process.end(f"it wrote more than {most} MiB to its scratch folder")
            return False
        if private_bytes(process.process_id) > watched.memory_bytes:
            process.end(f"it held more than {watched.memory_bytes >> 20} MiB of memory")
            return False
        return True


@dataclass(frozen=True, slots=True)
class _Watched:
    """A process that is looked after."""

    process: ChildProcess
    memory_bytes: int
    scratch_bytes: int


def _exceeds(folder: str, limit_bytes: int) -> bool:
    """Whether a folder holds more than it may, in bytes or in entries."""
    size, count, waiting = 0, 0, [folder]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    count += 1
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    size += _BLOCK_BYTES * entry.stat(follow_symlinks=False).st_blocks
                    if size > limit_bytes or count > _MOST_ENTRIES:
                        return True
        except FileNotFoundError:
            continue  # it has just been removed, with its process
        except OSError:
            return True  # what cannot be looked into may hold anything
    return False
