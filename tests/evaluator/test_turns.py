"""Whose turn it is on a device: users share it, and a turn lasts as long as its work."""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from evaluator_svc.devices.turns import DeviceTurns, Turn
from evaluator_svc.evaluator import LocalEvaluator
from evaluator_svc.service import evaluator_service
from kernel_foundry.caller import Caller, set_caller
from kernel_foundry.domain.admission import Admission
from kernel_foundry.domain.task import Task, Workload
from kernel_foundry.errors import DeviceBusyError
from kernel_foundry.rpc.connection import CallOptions, RetryPolicy
from kernel_foundry.rpc.evaluator import RemoteEvaluator
from kernel_foundry.rpc.security import ServerSecurity
from kernel_foundry.rpc.server import running
from kernel_foundry.rpc.tokens import Role, TokenFile
from tests.quick_settings import quick_settings
from tests.shared_evaluator import Shared

TASK = Task(name="t", reference="class Model: ...", workloads=(Workload(name="default"),))


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


class Queue:
    """Turns on one device with one place, in the order in which they begin."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.turns = DeviceTurns(self.clock)
        self.asked: list[tuple[str, Turn]] = []

    def ask(self, name: str, device: str = "sycl:0", places: int = 1, **who: int) -> Turn:
        turn = self.turns.ask(device, Caller(name=name, **who), places)
        self.asked.append((name, turn))
        return turn

    def order(self, seconds: Callable[[str], float]) -> list[str]:
        """Let each take its time until none is left; return who was served."""
        served = []
        while begun := [(n, t) for n, t in self.asked if t.begun.done()]:
            name, turn = begun[0]
            self.asked.remove(begun[0])
            served.append(name)
            self.clock.now_s += seconds(name)
            self.turns.end(turn)
        assert not self.asked
        return served


def test_users_share_a_device_by_time_not_by_calls() -> None:
    """Whoever comes later with few calls does not wait for all of another's; long calls weigh."""
    queue = Queue()
    for name in ("ada",) * 6 + ("bob",) * 3:
        queue.ask(name)
    served = queue.order(lambda name: {"ada": 1.0, "bob": 2.5}[name])
    assert served[:2] == ["ada", "bob"]
    assert served[2:5] == ["ada", "ada", "bob"]
    assert sorted(served) == ["ada"] * 6 + ["bob"] * 3


def test_what_a_user_was_given_long_ago_is_forgotten() -> None:
    queue = Queue()
    queue.ask("ada")
    queue.order(lambda _: 100.0)
    queue.clock.now_s += 100_000.0
    queue.ask("eve")
    for name in ("bob", "ada"):
        queue.ask(name)
    assert queue.order(lambda _: 1.0) == ["eve", "bob", "ada"]


def test_priority_goes_first_and_calls_of_one_user_by_age() -> None:
    queue = Queue()
    queue.ask("ada")
    for name, priority in (("ada", 0), ("bob", 0), ("ada", 3)):
        queue.ask(name, priority=priority)
    assert queue.order(lambda _: 1.0) == ["ada", "ada", "bob", "ada"]


def test_a_user_has_as_many_at_once_as_the_token_allows_on_all_devices() -> None:
    queue = Queue()
    first = queue.ask("ada", "sycl:0", 2, most_at_once=1)
    second = queue.ask("ada", "cuda:0", 2, most_at_once=1)
    third = queue.ask("bob", "cuda:0", 2)
    assert [t.begun.done() for t in (first, second, third)] == [True, False, True]
    queue.turns.end(first)
    assert second.begun.done()


def test_a_turn_that_is_given_up_goes_to_the_next() -> None:
    queue = Queue()
    first, left, third = (queue.ask(name) for name in ("ada", "bob", "eve"))
    left.begun.cancel()
    queue.turns.end(left)
    queue.turns.end(first)
    assert third.begun.done()


class SlowAdmission:
    """Holds each admission, on its device's thread, until it may end."""

    def __init__(self) -> None:
        self.count = 0
        self.begun = threading.Semaphore(0)
        self.may_end = threading.Event()

    def __call__(self, _task: Task, _site: object) -> Admission:
        self.count += 1
        self.begun.release()
        self.may_end.wait()
        raise DeviceBusyError("enough")


async def test_a_place_is_held_until_what_a_caller_left_is_done(
    tmp_path: Path,
    local_evaluator: Callable[[str], LocalEvaluator],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With --at-once 1 a user who leaves call after call does not get a second device's place."""
    once = CallOptions(retry=RetryPolicy(attempts=1))
    file = TokenFile(tmp_path / "tokens.json")
    evaluator, slow = local_evaluator("null"), SlowAdmission()
    monkeypatch.setattr(evaluator, "_admit", slow)
    monkeypatch.setattr(evaluator._sites, "_settings", quick_settings(queue_limit=0))
    security = ServerSecurity(tokens=tmp_path / "tokens.json", audit_log=tmp_path / "audit")
    service = evaluator_service(Shared(evaluator))
    async with running([service], "127.0.0.1:0", security=security) as target:
        clients = {}
        for name, most in (("ada", 1), ("bob", None)):
            monkeypatch.setenv("KERNEL_FOUNDRY_TOKEN", file.create(name, Role.RUN, 1, at_once=most))
            clients[name] = RemoteEvaluator(target, once)
        ada, bob = clients["ada"], clients["bob"]
        left = asyncio.create_task(ada.admit(TASK))
        await asyncio.to_thread(slow.begun.acquire)
        left.cancel()
        again = asyncio.create_task(ada.admit(TASK))
        with pytest.raises(DeviceBusyError, match="2 calls wait"):  # each user has a queue
            await asyncio.gather(*(ada.admit(TASK) for _ in range(2)))
        other = asyncio.create_task(bob.admit(TASK))
        await asyncio.to_thread(slow.begun.acquire)
        assert not again.done()
        slow.may_end.set()
        for call in (again, other):
            with pytest.raises(DeviceBusyError, match="enough"):
                await call
        assert slow.count == 3
        for client in clients.values():
            await client.close()


def test_a_call_in_this_process_is_nobody_s() -> None:
    """And has no limits."""
    set_caller(Caller())
    queue = Queue()
    assert all(queue.ask("", places=3).begun.done() for _ in range(3))
