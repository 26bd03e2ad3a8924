"""The inspectors of one candidate: taken when its first object is read, given to no other one."""

import contextlib
import queue
import threading
from collections.abc import Iterator

from evaluator_svc.processes.process import ChildProcess
from evaluator_svc.processes.spare_pool import SparePool


class CandidateInspectors:
    """Inspectors that read objects of one candidate; several threads may share them.

    Args:
        spares: Where the first one comes from; the others are started beside it.
        most: Processes at once.
    """

    def __init__(self, spares: SparePool, most: int = 1) -> None:
        self._spares = spares
        self._places = threading.Semaphore(most)
        self._idle: queue.SimpleQueue[ChildProcess] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._has_taken = False

    @contextlib.contextmanager
    def taken(self) -> Iterator[ChildProcess]:
        """Use one of them for one object; waits for it where all are in use."""
        with self._places:
            process = self._take()
            try:
                yield process
            finally:
                if process.is_running:
                    self._idle.put(process)
                else:
                    process.kill()

    def close(self) -> None:
        """End all of them. None is in use any more."""
        while not self._idle.empty():
            self._idle.get().kill()

    def __enter__(self) -> "CandidateInspectors":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _take(self) -> ChildProcess:
        while not self._idle.empty():
            process = self._idle.get()
            if process.is_running:
                return process
            process.kill()
        with self._lock:
            is_first = not self._has_taken
            self._has_taken = True
        return self._spares.take() if is_first else self._spares.start_another()
