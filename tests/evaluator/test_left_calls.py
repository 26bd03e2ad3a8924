"""A call that nobody waits for is stopped, in this process and over a socket.

One with a request id goes on for some seconds, in which its repeat gets the verdict.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from evaluator_svc.evaluator import LocalEvaluator
from evaluator_svc.messages.runner import LoadRequest, RunRequest
from evaluator_svc.processes.process import ChildProcess
from evaluator_svc.service import evaluator_service
from kernel_foundry.domain.request import EvaluationLimits, EvaluationRequest
from kernel_foundry.domain.sweep import SweepRequest
from kernel_foundry.domain.task import Task, Workload
from kernel_foundry.plan.candidate_text import split
from kernel_foundry.ports import Evaluator
from kernel_foundry.rpc.connection import CallOptions, RetryPolicy
from kernel_foundry.rpc.evaluator import RemoteEvaluator
from kernel_foundry.rpc.server import running
from tests.evaluator.test_several_devices import REFERENCE, RELU
from tests.quick_settings import quick_settings
from tests.shared_evaluator import Shared

TASK = Task(name="relu", reference=REFERENCE, workloads=(Workload(name="default"),))
# Without a stop, the test itself would take an hour.
LIMITS = EvaluationLimits(run_seconds=3600.0, timing_seconds=0.05)
REQUEST = EvaluationRequest(task=TASK, device="", source=split(RELU), limits=LIMITS)
ONCE = CallOptions(retry=RetryPolicy(attempts=1))


class Hanging:
    """The first runner that is asked to run a candidate does not hear it until it may go on."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._loop = asyncio.get_running_loop()
        self._process: ChildProcess | None = None
        self._began = asyncio.Event()
        self._late: Callable[[], None] | None = None
        ask = ChildProcess.ask

        def asked(process: ChildProcess, message: object, *expected: type, **more: Any) -> Any:
            if self._process is None and _runs(message):
                self._process = process
                self._hold_back(process.conversation)
            return ask(process, message, *expected, **more)

        patch.setattr(ChildProcess, "ask", asked)

    async def began(self) -> ChildProcess:
        await self._began.wait()
        assert self._process is not None
        return self._process

    def go_on(self) -> None:
        assert self._late is not None
        self._late()

    def _hold_back(self, conversation: Any) -> None:
        send = conversation.send

        def hold(message: object, **more: Any) -> None:
            conversation.send = send
            self._late = partial(send, message, **more)
            self._loop.call_soon_threadsafe(self._began.set)

        conversation.send = hold


def _runs(message: object) -> bool:
    return isinstance(message, RunRequest) or (
        isinstance(message, LoadRequest) and bool(message.runs)
    )


@pytest.fixture
async def hanging(monkeypatch: pytest.MonkeyPatch) -> Hanging:
    return Hanging(monkeypatch)


@pytest.fixture(scope="module")
def impatient(cache_dir: Path) -> Iterator[LocalEvaluator]:
    """An evaluator with one place, which stops what nobody waits for at once."""
    settings = quick_settings(
        device_kinds=("null",), unsafe_no_sandbox=True, parallel_evaluations=1
    )
    evaluator = LocalEvaluator(settings, retry_seconds=0.0)
    yield evaluator
    asyncio.run(evaluator.close())


@pytest.fixture(params=["direct", "socket"])
async def connect(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Any]:
    """Return what makes a client of an evaluator; each has a connection of its own."""
    async with AsyncExitStack() as stack:
        targets: list[str] = []

        async def client(evaluator: LocalEvaluator) -> Evaluator:
            if request.param == "direct":
                return evaluator
            if not targets:
                service = evaluator_service(Shared(evaluator))
                serving = running([service], f"unix:{tmp_path}/s")
                targets.append(await stack.enter_async_context(serving))
            remote = RemoteEvaluator(targets[0], ONCE)
            stack.push_async_callback(remote.close)
            return remote

        yield client


@pytest.fixture(params=["with an id", "without"])
def request_id(request: pytest.FixtureRequest) -> str:
    """An id that the evaluator has not heard yet, or none."""
    return uuid4().hex if request.param == "with an id" else ""


async def _leave(call: "asyncio.Task[Any]") -> None:
    call.cancel()
    with suppress(asyncio.CancelledError):
        await call


async def test_a_verdict_that_runs_is_stopped(
    request_id: str, impatient: LocalEvaluator, connect: Any, hanging: Hanging
) -> None:
    """Its process ends, the device's only place is free, and its repeat is judged afresh."""
    evaluator = await connect(impatient)
    request = replace(REQUEST, request_id=request_id)
    call = asyncio.create_task(evaluator.evaluate(request))
    process = await hanging.began()
    await _leave(call)
    assert (await evaluator.evaluate(REQUEST)).passed
    assert not process.is_running
    assert (await evaluator.evaluate(request)).passed


async def test_a_sweep_that_runs_is_stopped(
    request_id: str, impatient: LocalEvaluator, connect: Any, hanging: Hanging
) -> None:
    evaluator = await connect(impatient)
    request = SweepRequest(
        task=TASK, device="", source=REQUEST.source, limits=LIMITS, request_id=request_id
    )

    async def sweep(evaluator: Evaluator) -> list[Any]:
        return [result async for result in evaluator.sweep(request)]

    call = asyncio.create_task(sweep(evaluator))
    process = await hanging.began()
    await _leave(call)
    assert (await evaluator.evaluate(REQUEST)).passed
    assert not process.is_running
    assert len(await sweep(evaluator)) == 1


async def test_a_verdict_that_waits_gives_up_its_place(
    impatient: LocalEvaluator, hanging: Hanging, caplog: pytest.LogCaptureFixture
) -> None:
    """It is never begun."""
    requests = [
        replace(
            REQUEST,
            source=replace(REQUEST.source, plan=f"{REQUEST.source.plan}# {number}\n"),
            request_id=str(number),
        )
        for number in range(3)
    ]
    with caplog.at_level(logging.INFO, "evaluator_svc"):
        calls = [asyncio.create_task(impatient.evaluate(request)) for request in requests[:2]]
        await hanging.began()
        await _leave(calls[1])
        last = asyncio.create_task(impatient.evaluate(requests[2]))
        hanging.go_on()
        assert (await calls[0]).passed
        assert (await last).passed
    begun = [r.getMessage() for r in caplog.records if r.getMessage().endswith("begins")]
    digests = [request.source.digest[:8] for request in requests]
    assert [any(digest in line for line in begun) for digest in digests] == [True, False, True]


async def test_who_repeats_a_call_soon_gets_its_verdict(
    local_evaluator: Callable[[str], LocalEvaluator],
    connect: Any,
    hanging: Hanging,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """As one whose connection broke does; it is judged once."""
    shared = local_evaluator("null")
    broken, again = await connect(shared), await connect(shared)
    request = replace(REQUEST, request_id=uuid4().hex)
    with caplog.at_level(logging.INFO, "evaluator_svc"):
        call = asyncio.create_task(broken.evaluate(request))
        await hanging.began()
        await _leave(call)
        if isinstance(broken, RemoteEvaluator):
            await broken.close()
        repeated = asyncio.create_task(again.evaluate(request))
        hanging.go_on()
        assert (await repeated).passed
    begun = [r for r in caplog.records if r.getMessage().startswith("verdict")]
    assert len(begun) == 2, "its begin and its end"


async def test_an_evaluator_that_closes_stops_what_nobody_waits_for(
    cache_dir: Path, hanging: Hanging
) -> None:
    """Ctrl-C is not followed by the rest of a verdict."""
    settings = quick_settings(device_kinds=("null",), unsafe_no_sandbox=True)
    evaluator = LocalEvaluator(settings)
    call = asyncio.create_task(evaluator.evaluate(replace(REQUEST, request_id="left")))
    process = await hanging.began()
    await _leave(call)
    await evaluator.close()
    assert not process.is_running
