"""Ends processes whose scratch folder on the host has grown too large.

Inside bubblewrap the folder is a file system of fixed size. Elsewhere the kernel bounds each file
and no folder, so that somebody has to look: several times a second, at folders that are empty but
for mischief. A locked process cannot remove what it wrote there, and no kernel can hide it in
folders of its own (see `sandbox.landlock`).
Knows nothing of what the processes are.
"""

import os
import threading
from pathlib import Path
from typing import Final

from evaluator_svc.process import ChildProcess

_LOOK_SECONDS: Final = 0.25
_MOST_ENTRIES: Final = 4096
_BLOCK_BYTES: Final = 512
"""What `st_blocks` counts, whatever the file system."""


class ScratchWatch:
    """Looks after the scratch folders of processes that were handed to it.

    Args:
        limit_bytes: Most that a folder may hold.
        look_seconds: Time between looks.
    """

    def __init__(self, limit_bytes: int, look_seconds: float = _LOOK_SECONDS) -> None:
        self._limit_bytes = limit_bytes
        self._look_seconds = look_seconds
        self._watched: list[ChildProcess] = []
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._watch, name="scratch-watch", daemon=True)
        self._thread.start()

    def add(self, process: ChildProcess) -> None:
        """Look after a process until its scratch folder is gone."""
        with self._changed:
            self._watched.append(process)
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
            finished = [process for process in watched if not self._look(process)]
            with self._changed:
                self._watched = [p for p in self._watched if p not in finished]

    def _look(self, process: ChildProcess) -> bool:
        """Return whether to go on looking at a process's folder."""
        if process.scratch is None or not Path(process.scratch.name).is_dir():
            return False
        if _exceeds(process.scratch.name, self._limit_bytes):
            process.end(f"it wrote more than {self._limit_bytes >> 20} MiB to its scratch folder")
            return False
        return True


def _exceeds(folder: str, limit_bytes: int) -> bool:
    """Return whether a folder holds more than it may, in bytes or in entries."""
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
