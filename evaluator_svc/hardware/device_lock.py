"""Who may use a device's cores: many build and verify at once, or one takes times alone.

On the CPU device, compilers and timings share the cores, so they must not overlap. A GPU may be
used by other processes of the host as well, so there a lock between processes stands behind this
one.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from evaluator_svc.hardware.host_lock import HostLock


class DeviceLock:
    """A readers-writer lock in which a waiting timing goes before new builds.

    Args:
        host: The lock between processes; None where nobody else uses the device.
    """

    def __init__(self, host: HostLock | None = None) -> None:
        self._host = host
        self._changed = threading.Condition()
        self._sharers = 0
        self._exclusive = False
        self._waiting = 0

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Hold the device together with others, while nobody takes times."""
        with self._changed:
            self._changed.wait_for(lambda: not self._exclusive and self._waiting == 0)
            self._sharers += 1
        try:
            with self._host.shared() if self._host else nullcontext():
                yield
        finally:
            with self._changed:
                self._sharers -= 1
                self._changed.notify_all()

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold the device alone, to take times."""
        with self._changed:
            self._waiting += 1
            try:
                self._changed.wait_for(lambda: not self._exclusive and self._sharers == 0)
            finally:
                self._waiting -= 1
                self._changed.notify_all()
            self._exclusive = True
        try:
            with self._host.exclusive() if self._host else nullcontext():
                yield
        finally:
            with self._changed:
                self._exclusive = False
                self._changed.notify_all()
