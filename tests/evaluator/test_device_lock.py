"""Builds share a device, timings have it alone."""

import threading

import pytest

from evaluator_svc.hardware.device_lock import DeviceLock


def test_sharers_are_in_together():
    """Two can share at the same time."""
    lock = DeviceLock()
    both = threading.Barrier(2, timeout=60.0)

    def share() -> None:
        with lock.shared():
            both.wait()

    threads = [threading.Thread(target=share) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not both.broken


def test_a_timing_waits_for_sharers_and_goes_before_new_ones():
    lock = DeviceLock()
    order: list[str] = []
    timing_waits = threading.Event()

    def take_times() -> None:
        timing_waits.set()
        with lock.exclusive():
            order.append("timing")

    def share() -> None:
        with lock.shared():
            order.append("second sharer")

    timing, sharer = threading.Thread(target=take_times), threading.Thread(target=share)
    with lock.shared():
        timing.start()
        timing_waits.wait()
        while lock._waiting == 0:
            threading.Event().wait(0.001)
        sharer.start()
        order.append("first sharer")
    timing.join()
    sharer.join()
    assert order == ["first sharer", "timing", "second sharer"]


def test_an_error_inside_opens_the_gate_again():
    """Whatever is raised, the next one gets in."""
    lock = DeviceLock()
    for hold in (lock.exclusive, lock.shared):
        with pytest.raises(RuntimeError), hold():
            raise RuntimeError
    with lock.exclusive():
        pass
