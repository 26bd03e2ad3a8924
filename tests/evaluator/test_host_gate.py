"""The lock between processes: many hold a device together, who takes times holds it alone."""

import fcntl
import threading
from pathlib import Path

import pytest

from evaluator_svc.hardware.gate import DeviceGate
from evaluator_svc.hardware.host_gate import HostGate


@pytest.fixture
def gates(tmp_path: Path) -> tuple[DeviceGate, DeviceGate]:
    """The gates of two evaluators: their threads share nothing but the files."""
    path = tmp_path / "devices" / "cuda-0"
    return DeviceGate(HostGate(path)), DeviceGate(HostGate(path))


def test_two_evaluators_share_a_device(gates: tuple[DeviceGate, DeviceGate]) -> None:
    first, second = gates
    with first.shared(), second.shared():
        pass


@pytest.mark.parametrize("other", ["shared", "exclusive"])
def test_who_takes_times_is_alone(gates: tuple[DeviceGate, DeviceGate], other: str) -> None:
    first, second = gates
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
    gates: tuple[DeviceGate, DeviceGate], tmp_path: Path
) -> None:
    first, second = gates
    order: list[str] = []
    door = HostGate(tmp_path / "devices" / "cuda-0")

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
