"""Single-use processes kept ready: locked in, device open, waiting for their only candidate."""

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterator

from evaluator_svc.hardware.device_lock import DeviceLock
from evaluator_svc.processes.process import ChildProcess


class SparePool:
    """Ready processes of one sort; each that was used is replaced in the background.

    A replacement on a GPU takes as long as a small verdict's stages before its times are taken,
    and times wait for it: so it begins after the use, unless no other process is ready.

    Args:
        start: Starts a process and returns it once it is ready.
        device_lock: Replacements are started only while nobody takes times.
        size: Ready processes to keep, and how many are started at once.
    """

    def __init__(
        self, start: Callable[[], ChildProcess], *, device_lock: DeviceLock, size: int
    ) -> None:
        self._start = start
        self._device_lock = device_lock
        self._size = size
        self._ready: deque[ChildProcess] = deque()
        self._changed = threading.Condition()
        self._wanted = False
        self._starting = 0
        self._closed = False
        self._keepers = [
            threading.Thread(target=self._keep, name="spare-pool", daemon=True)
            for _ in range(max(size, 1))
        ]
        for keeper in self._keepers:
            keeper.start()

    def take(self) -> ChildProcess:
        """Return a ready process, which now belongs to the caller; raises as `start` does."""
        process = self._take()
        self.refill()
        return process

    @contextlib.contextmanager
    def taken(self) -> Iterator[ChildProcess]:
        """Use a ready process once, then end it."""
        process = self._take()
        try:
            yield process
        finally:
            process.kill()
            self.refill()

    def start_another(self) -> ChildProcess:
        """Start a process beside the pool: many that `take` would wait for each other's spare."""
        return self._start()

    def refill(self) -> None:
        """Bring the pool back to its size, in the background."""
        with self._changed:
            self._wanted = True
            self._changed.notify_all()

    def close(self) -> None:
        """End every ready process and the keepers."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for keeper in self._keepers:
            keeper.join()
        while self._ready:
            self._ready.popleft().kill()

    def _take(self) -> ChildProcess:
        """Return a process, whose replacement begins now only if none is left."""
        with self._changed:
            # One that is about to be ready comes sooner than one that is started now. Its keeper
            # has the device's lock then, so that a caller who has it waits for nobody.
            self._changed.wait_for(lambda: bool(self._ready) or not self._starting)
            while self._ready:
                process = self._ready.popleft()
                if process.is_running:
                    if not self._ready:
                        self.refill()
                    return process
                process.kill()
        self.refill()
        return self._start()

    def _keep(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or self._wanted)
                if self._closed:
                    return
                self._wanted = len(self._ready) + self._starting < self._size
                if not self._wanted:
                    continue
            with self._device_lock.shared():
                self._start_one()

    def _start_one(self) -> None:
        with self._changed:
            if len(self._ready) + self._starting >= self._size:
                return
            self._starting += 1
        process = None
        # A spare is a convenience: the next `take` meets the same failure and raises it.
        with contextlib.suppress(Exception):
            process = self._start()
        with self._changed:
            self._starting -= 1
            self._wanted = process is not None
            if process is not None:
                self._ready.append(process)
            self._changed.notify_all()
