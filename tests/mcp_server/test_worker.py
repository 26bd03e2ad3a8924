"""Calls of tools on their way to the services: whose budget they use, what callers hear."""

import threading
from collections.abc import AsyncIterator

import pytest

from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.mcp_server.allowance import Allowances
from kernel_foundry.mcp_server.worker import Worker
from kernel_foundry.sdk.client import Foundry
from kernel_foundry.sdk.services import Targets

ALLOWANCES = {"evaluations": 2, "seconds": 60.0}


class _Caller:
    """What a tool sees of its caller.

    Args:
        token: What it shows over HTTP.
    """

    def __init__(self, token: str = "") -> None:
        self.headers = {"authorization": f"Bearer {token}"} if token else None
        self.heard: list[float] = []
        self.has_heard = threading.Event()

    async def report_progress(self, done: float, *, message: str) -> None:
        """Take a notice."""
        self.heard.append(done)
        if len(self.heard) == 3:
            self.has_heard.set()


@pytest.fixture
async def worker() -> AsyncIterator[Worker]:
    made = Worker(Targets(), Allowances(**ALLOWANCES), notice_s=0.01)
    yield made
    await made.close()


async def test_a_caller_hears_of_a_call_that_goes_on(worker: Worker) -> None:
    caller = _Caller()

    def work(_foundry: Foundry) -> bool:
        return caller.has_heard.wait(timeout=30)

    assert await worker.call(caller, work)
    assert caller.heard == sorted(set(caller.heard))
    assert len(caller.heard) >= 3


async def test_work_with_notices_of_its_own_gets_no_others(worker: Worker) -> None:
    quiet, caller = _Caller(), _Caller()
    await worker.call(quiet, lambda _: threading.Event().wait(0.1), gives_notice=False)
    assert await worker.call(caller, lambda _: 1) == 1
    assert quiet.heard == []


def test_each_token_has_a_budget_however_often_it_connects() -> None:
    allowances = Allowances(**ALLOWANCES)
    allowances.of(_Caller("one")).take(2)
    with pytest.raises(InvalidArgumentError):
        allowances.of(_Caller("one")).take(1)
    allowances.of(_Caller("other")).take(1)
    assert allowances.of(_Caller()).left == 2
