"""The lock of a device between processes: several evaluators of one host may have the same device.

Two locked files: who wants to take times holds the door while it waits, so that those who come
later cannot keep it waiting for ever. The system frees the locks of a process that dies. Threads of
one process meet in `device_lock.py`.
"""

import fcntl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path


class HostLock:
    """A readers-writer lock between the processes of a host.

    Args:
        path: Two files of this name, with endings of their own, are made.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._room = path.with_suffix(".lock")
        self._door = path.with_suffix(".door")

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Hold the device together with others, while nobody takes times."""
        with ExitStack() as held:
            with _locked(self._door, fcntl.LOCK_SH):
                held.enter_context(_locked(self._room, fcntl.LOCK_SH))
            yield

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold the device alone, to take times."""
        with ExitStack() as held:
            with _locked(self._door, fcntl.LOCK_EX):
                held.enter_context(_locked(self._room, fcntl.LOCK_EX))
            yield


@contextmanager
def _locked(path: Path, how: int) -> Iterator[None]:
    # A file of its own for each holder: locks belong to open files, not to threads.
    with path.open("a") as file:
        fcntl.flock(file, how)
        yield
