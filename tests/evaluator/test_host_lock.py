"""The lock between processes: many hold a device together, who takes times holds it alone."""

import fcntl
import threading
from pathlib import Path

import pytest

from evaluator_svc.hardware.device_lock import DeviceLock
from evaluator_svc.hardware.host_lock import HostLock


@pytest.fixture
def locks(tmp_path: Path) -> tuple[DeviceLock, DeviceLock]:
    """The locks of two evaluators: their threads share nothing but the files."""
    path = tmp_path / "devices" / "cuda-0"
    return DeviceLock(HostLock(path)), DeviceLock(HostLock(path))


def test_two_evaluators_share_a_device(locks: tuple[DeviceLock, DeviceLock]) -> None:
    first, second = locks
    with first.shared(), second.shared():
        pass


@pytest.mark.parametrize("other", ["shared", "exclusive"])
def test_who_takes_times_is_alone(locks: tuple[DeviceLock, DeviceLock], other: str) -> None:
    first, second = locks
    order: list[str] = []
    started = threading.Event()

    def enter() -> None:
        started.set()
        with getattr(second, other)():
            order.append("second")

    thread = threading.Thread(target=enter)
    with first.exclusive():
        thread.start()
        started.wait()
        order.append("first")
    thread.join()
    assert order == ["first", "second"]


def test_a_waiting_timing_goes_before_those_who_come_later(
    locks: tuple[DeviceLock, DeviceLock], tmp_path: Path
) -> None:
    first, second = locks
    order: list[str] = []
    door = HostLock(tmp_path / "devices" / "cuda-0")

    def take_times() -> None:
        with second.exclusive():
            order.append("timing")

    def come_later() -> None:
        with door.shared():
            order.append("later")

    timing, later = threading.Thread(target=take_times), threading.Thread(target=come_later)
    with first.shared():
        timing.start()
        while _is_free(tmp_path / "devices" / "cuda-0.door"):
            pass
        later.start()
    timing.join()
    later.join()
    assert order == ["timing", "later"]


def _is_free(path: Path) -> bool:
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
