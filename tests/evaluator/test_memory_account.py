"""One account for each device's memory: nothing is promised twice, nobody is passed by."""

import threading
import time
from collections.abc import Callable

import pytest

from evaluator_svc.hardware.memory_account import MemoryAccount, MemoryLease
from kernel_foundry.errors import DeviceMemoryError, StatusCode


class Waiting:
    def __init__(self, ask: Callable[[], MemoryLease]) -> None:
        self.lease: MemoryLease | None = None
        self._ask = ask
        self._thread = threading.Thread(target=self._wait, daemon=True)
        self._thread.start()

    def _wait(self) -> None:
        self.lease = self._ask()

    def join(self) -> MemoryLease:
        self._thread.join(timeout=30)
        assert self.lease is not None
        return self.lease


def until_waiting(account: MemoryAccount, count: int) -> None:
    while len(account._waiting) < count:
        time.sleep(0.001)


def test_the_dearest_choice_that_is_free_is_taken() -> None:
    account = MemoryAccount(100)

    first, second = account.lease(60, 20), account.lease(60, 20)

    assert (first.size_bytes, second.size_bytes) == (60, 20)
    assert account.free_bytes == 20


def test_whoever_came_first_goes_first() -> None:
    account = MemoryAccount(100)
    held = account.lease(80)
    large = Waiting(lambda: account.lease(90))
    until_waiting(account, 1)
    small = Waiting(lambda: account.lease(10))
    until_waiting(account, 2)

    assert (large.lease, small.lease) == (None, None), "the small one does not pass the large one"
    held.give_back()
    assert large.join().size_bytes == 90
    assert small.join().size_bytes == 10


def test_a_lease_grows_only_by_what_is_free() -> None:
    account = MemoryAccount(100)
    with account.lease(50) as first, account.lease(30):
        assert not first.grow(30)
        assert first.grow(20)
        assert account.free_bytes == 0
    assert account.free_bytes == 100


def test_a_lease_is_given_back_once() -> None:
    account = MemoryAccount(100)
    with account.lease(50) as lease:
        lease.give_back()
    assert account.free_bytes == 100


def test_the_rest_is_all_that_is_free() -> None:
    account = MemoryAccount(100)
    with account.lease(30), account.lease_rest(25) as rest:
        assert rest.size_bytes == 70


def test_what_there_never_is_is_an_error_at_once() -> None:
    with pytest.raises(DeviceMemoryError, match=r"0\.2 GB of device memory are needed") as caught:
        MemoryAccount(100_000_000).lease(500_000_000, 200_000_000)
    assert caught.value.code is StatusCode.RESOURCE_EXHAUSTED


def test_many_at_once_never_overcommit() -> None:
    account = MemoryAccount(10)
    most, used, lock = [0], [0], threading.Lock()

    def work(size: int) -> None:
        with account.lease(size):
            with lock:
                used[0] += size
                most[0] = max(most[0], used[0])
            time.sleep(0.0005)
            with lock:
                used[0] -= size

    threads = [threading.Thread(target=work, args=(1 + i % 7,)) for i in range(60)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert 0 < most[0] <= account.capacity_bytes
    assert account.free_bytes == 10
