"""Turns of tests that run side by side: one that takes times has the machine to itself.

Locks on two files of the checkout, which end with their process and leave nothing behind. Who
wants the machine alone waits at the gate for those inside, and nobody passes it meanwhile. A
session that a test starts has that test's turn.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_GATE = Path(__file__)
_INSIDE = Path(__file__).with_name("conftest.py")
_IN_A_TEST = "PYTEST_CURRENT_TEST" in os.environ


class Turns:
    """What one process of the test session holds."""

    def __init__(self) -> None:
        self._inside = os.open(_INSIDE, os.O_RDONLY | os.O_CLOEXEC)

    @contextmanager
    def turn(self, *, alone: bool) -> Iterator[None]:
        """Run the body beside other tests, or alone."""
        if _IN_A_TEST:
            yield
            return
        self._enter(fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        try:
            yield
        finally:
            fcntl.flock(self._inside, fcntl.LOCK_UN)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Run the body alone, within a turn beside others."""
        if _IN_A_TEST:
            yield
            return
        fcntl.flock(self._inside, fcntl.LOCK_UN)  # else two that want this wait for each other
        self._enter(fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._inside, fcntl.LOCK_UN)
            self._enter(fcntl.LOCK_SH)

    def _enter(self, how: int) -> None:
        gate = os.open(_GATE, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(gate, fcntl.LOCK_EX)
            fcntl.flock(self._inside, how)
        finally:
            os.close(gate)
