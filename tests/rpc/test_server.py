"""A server's life, seen by clients: readiness, reflection, errors, cancellation, the end."""

import asyncio
import dataclasses
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from archive_svc.archive import LocalArchive
from archive_svc.service import archive_service
from evaluator_svc.service import evaluator_service
from generator_svc.service import generator_service
from kernel_foundry.domain.candidate import KernelSource
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.request import EvaluationRequest
from kernel_foundry.domain.task import Size, Task, Workload
from kernel_foundry.errors import (
    DeadlineExceededError,
    InvalidArgumentError,
    KernelFoundryError,
    ProcessLostError,
    ServiceUnavailableError,
    TaskInvalidError,
    VerdictMismatchError,
)
from kernel_foundry.rpc.address import check_not_in_use
from kernel_foundry.rpc.connection import CallOptions, RetryPolicy
from kernel_foundry.rpc.evaluator import RemoteEvaluator
from kernel_foundry.rpc.server import running
from kernel_foundry.testing.evaluator import FakeEvaluator
from kernel_foundry.testing.generator import FakeGenerator
from tests.rpc.gateway import gateway_before

ONCE = CallOptions(retry=RetryPolicy(attempts=1))
GATEWAY = "gateway"
SERVICES = ["evaluator", "archive", "generator"]
TASK = Task(name="t", reference="class Model: ...", workloads=(Workload(name="default"),))


def _request(plan: str = "nothing", request_id: str = "") -> EvaluationRequest:
    source = KernelSource(language=Language.SYCL, device_code="", plan=plan)
    return EvaluationRequest(task=TASK, device="", source=source, request_id=request_id)


@asynccontextmanager
async def serving(
    evaluator: FakeEvaluator, listen: str, options: CallOptions = ONCE
) -> AsyncIterator[RemoteEvaluator]:
    async with AsyncExitStack() as stack:
        service, is_behind = evaluator_service(evaluator), listen == GATEWAY
        address = "127.0.0.1:0" if is_behind else listen
        target = await stack.enter_async_context(running([service], address, grace_s=5.0))
        if is_behind:
            target = await stack.enter_async_context(gateway_before(target))
        remote = RemoteEvaluator(target, options)
        try:
            yield remote
        finally:
            await remote.close()


async def _call_until_refused(evaluator: RemoteEvaluator) -> None:
    while True:
        await evaluator.capabilities()


class Gate:
    """Holds evaluations until opened, and notes what became of them."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()
        self.opened = asyncio.Event()
        self.cancelled = asyncio.Event()

    async def __call__(self) -> None:
        self.entered.set()
        try:
            await self.opened.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise


@pytest.fixture
def listen(tmp_path: Path) -> str:
    """A UNIX socket of this test."""
    return f"unix:{tmp_path}/s"


@pytest.fixture(params=["socket", GATEWAY])
def way(request: pytest.FixtureRequest, listen: str) -> str:
    """Where `serving` listens: at a UNIX socket, or behind a gateway."""
    return listen if request.param == "socket" else GATEWAY


@pytest.mark.parametrize("address", ["127.0.0.1:0", "localhost:0"])
async def test_tcp_serves_as_a_unix_socket_does(address: str) -> None:
    """Port 0 takes a free port, and the target that comes back reaches it."""
    async with serving(FakeEvaluator(), address) as evaluator:
        assert (await evaluator.capabilities()).devices[0].id == "fake:0"


async def test_unix_socket_is_its_owners_alone(tmp_path: Path, listen: str) -> None:
    """Whoever may connect may run code, so no one else may."""
    async with serving(FakeEvaluator(), listen):
        assert (tmp_path / "s").stat().st_mode & 0o777 == 0o600


async def test_address_that_cannot_be_bound_is_named(tmp_path: Path) -> None:
    """The error says which address, and what was made is closed."""
    with pytest.raises(ServiceUnavailableError, match=r"on unix:.*missing/s: there is no folder"):
        async with serving(FakeEvaluator(), f"unix:{tmp_path}/missing/s"):
            pass


async def test_taken_port_is_refused() -> None:
    """Two servers never share a port."""
    async with running([evaluator_service(FakeEvaluator())], "127.0.0.1:0") as target:
        with pytest.raises(ServiceUnavailableError, match=rf"{target}: port \d+ is in use"):
            async with running([evaluator_service(FakeEvaluator())], target):
                pass


def test_a_name_is_refused_if_one_of_its_addresses_is_in_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """GRPC would serve the other one alone, and clients of the name may reach either."""
    found = socket.getaddrinfo

    def two(_host: str, port: int, **options: Any) -> list[Any]:
        return found("127.0.0.2", port, **options) + found("127.0.0.1", port, **options)

    with socket.create_server(("127.0.0.1", 0)) as other:
        target = f"localhost:{other.getsockname()[1]}"
        with monkeypatch.context() as patch:
            patch.setattr(socket, "getaddrinfo", two)
            with pytest.raises(ServiceUnavailableError, match=rf"{target}: port \d+ is in use"):
                check_not_in_use(target)
    check_not_in_use("localhost:0")
    check_not_in_use("no.such.host.invalid:50051")  # what is no host, binding tells


@pytest.mark.parametrize(
    ("address", "complaint"),
    [
        ("localhost:99999", "port from 0 to 65535"),  # gRPC takes it for another port
        ("localhost:-1", "port from 0 to 65535"),
        ("localhost:1_0", "port from 0 to 65535"),
        ("localhost", "no port"),
        (":50051", "no host"),
        ("::1:50051", "no host"),
        ("http://localhost:50051", "no host"),
        ("unix:", "expected unix:/PATH"),
        ("unix:/" + "x" * 107, "expected unix:/PATH"),
    ],
)
async def test_what_is_no_address_is_refused(address: str, complaint: str) -> None:
    """On both sides, before gRPC makes another one of it."""
    with pytest.raises(InvalidArgumentError, match=complaint):
        async with running([evaluator_service(FakeEvaluator())], address):
            pass
    with pytest.raises(InvalidArgumentError):
        RemoteEvaluator(address, ONCE)


async def test_reflection_lists_all_services(listen: str, tmp_path: Path) -> None:
    """A client without protos finds every service and what its methods take."""
    services = [
        evaluator_service(FakeEvaluator()),
        archive_service(LocalArchive(f"sqlite:///{tmp_path}/runs.db")),
        generator_service(FakeGenerator()),
    ]
    asked = [
        reflection_pb2.ServerReflectionRequest(list_services=""),
        reflection_pb2.ServerReflectionRequest(
            file_containing_symbol="kernel_foundry.archive.v1.ArchiveService"
        ),
        reflection_pb2.ServerReflectionRequest(
            file_by_filename="kernel_foundry/common/v1/task.proto"
        ),
    ]
    async with running(services, listen) as target, grpc.aio.insecure_channel(target) as channel:
        stub = reflection_pb2_grpc.ServerReflectionStub(channel)
        answers = [answer async for answer in stub.ServerReflectionInfo(iter(asked))]
    names = {service.name for service in answers[0].list_services_response.service}
    assert names == {
        *(f"kernel_foundry.{s}.v1.{s.title()}Service" for s in SERVICES),
        "grpc.health.v1.Health",
        "grpc.reflection.v1alpha.ServerReflection",
    }
    assert b"ListEvaluations" in answers[1].file_descriptor_response.file_descriptor_proto[0]
    assert b"library_ops" in answers[2].file_descriptor_response.file_descriptor_proto[0]


async def test_health_follows_the_life_of_the_server(listen: str) -> None:
    """NOT_SERVING while it prepares, SERVING, and NOT_SERVING once it stops."""
    states = health_pb2.HealthCheckResponse
    prepared, stop = asyncio.Event(), asyncio.Event()

    class SlowEvaluator(FakeEvaluator):
        async def capabilities(self):  # the device probe
            await prepared.wait()
            return await super().capabilities()

    async def serve() -> None:
        async with running([evaluator_service(SlowEvaluator())], listen, grace_s=0.2):
            await stop.wait()

    server = asyncio.create_task(serve())
    name = "kernel_foundry.evaluator.v1.EvaluatorService"
    async with grpc.aio.insecure_channel(listen) as channel:
        watch = health_pb2_grpc.HealthStub(channel).Watch(
            health_pb2.HealthCheckRequest(service=name), wait_for_ready=True
        )
        assert (await watch.read()).status == states.NOT_SERVING
        prepared.set()
        assert (await watch.read()).status == states.SERVING
        stop.set()
        assert (await watch.read()).status == states.NOT_SERVING
        await server


async def test_call_in_flight_finishes_when_the_server_stops(listen: str) -> None:
    """Graceful: the running call gets its answer, a new one UNAVAILABLE."""
    gate, stop = Gate(), asyncio.Event()

    async def serve() -> None:
        async with running([evaluator_service(FakeEvaluator(gate))], listen, grace_s=280.0):
            await stop.wait()

    server = asyncio.create_task(serve())
    evaluator = RemoteEvaluator(listen)
    in_flight = asyncio.create_task(evaluator.evaluate(_request(request_id="1")))
    await gate.entered.wait()
    stop.set()
    late = RemoteEvaluator(listen, ONCE)
    with pytest.raises(ServiceUnavailableError, match=listen):
        await _call_until_refused(late)
    gate.opened.set()
    assert isinstance(await in_flight, Evaluation)
    await server
    await evaluator.close()
    await late.close()


async def test_call_beyond_the_grace_is_cut(listen: str) -> None:
    """A call that outlives the grace ends as an unavailable service, and its handler ends."""
    gate = Gate()
    evaluator = RemoteEvaluator(listen, ONCE)
    async with running([evaluator_service(FakeEvaluator(gate))], listen, grace_s=0.05):
        in_flight = asyncio.create_task(evaluator.evaluate(_request()))
        await gate.entered.wait()
    with pytest.raises(ServiceUnavailableError):
        await in_flight
    assert gate.cancelled.is_set()
    await evaluator.close()


async def test_cancelling_a_call_cancels_its_handler(way: str) -> None:
    """A caller that goes away leaves no work behind."""
    gate = Gate()
    async with serving(FakeEvaluator(gate), way) as evaluator:
        call = asyncio.create_task(evaluator.evaluate(_request()))
        await gate.entered.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await asyncio.wait_for(gate.cancelled.wait(), 60)


async def test_deadline_ends_call_and_handler(way: str) -> None:
    """The deadline travels: the service stops by itself."""
    gate = Gate()
    for seconds in (0.2, 2.0, 20.0):  # until the call gets as far as its handler
        options = CallOptions(work_deadline_s=seconds, retry=RetryPolicy(attempts=1))
        async with serving(FakeEvaluator(gate), way, options) as evaluator:
            with pytest.raises(DeadlineExceededError, match=r"127|unix"):
                await evaluator.evaluate(_request())
            if gate.entered.is_set():
                await asyncio.wait_for(gate.cancelled.wait(), 60)
                return
    pytest.fail("the call never came")


async def test_sixteen_calls_run_at_once(way: str) -> None:
    barrier = asyncio.Barrier(16)

    async def meet() -> None:
        await barrier.wait()

    async with serving(FakeEvaluator(meet), way) as evaluator:
        calls = (evaluator.evaluate(_request(plan=str(number))) for number in range(16))
        verdicts = await asyncio.wait_for(asyncio.gather(*calls), 60)
    assert len({verdict.candidate for verdict in verdicts}) == 16


async def test_bug_leaves_its_text_in_the_log_only(
    way: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A client gets an id; the traceback stays with the service."""

    async def bug() -> None:
        raise KeyError("secret")

    async with serving(FakeEvaluator(bug), way) as evaluator:
        with caplog.at_level(logging.ERROR), pytest.raises(KernelFoundryError) as caught:
            await evaluator.evaluate(_request())
    assert type(caught.value) is KernelFoundryError
    assert "secret" not in caught.value.message
    assert caught.value.metadata["id"] in caught.value.message
    assert caught.value.metadata["id"] in caplog.text
    assert "KeyError: 'secret'" in caplog.text


@pytest.mark.parametrize("text", ["x" * 1_000_000, "ü\n" * 100_000, "\x00\ud800"])
async def test_any_error_text_arrives_bounded(way: str, text: str) -> None:
    """Long or odd texts neither break the connection nor lose the class."""

    async def fail() -> None:
        raise TaskInvalidError(text, trace=text)

    async with serving(FakeEvaluator(fail), way) as evaluator:
        with pytest.raises(TaskInvalidError) as caught:
            await evaluator.evaluate(_request())
        assert len(caught.value.message) < 5000
        await evaluator.capabilities()


async def test_megabytes_of_text_pass(way: str) -> None:
    """Requests above gRPC's default of 4 MiB are served."""
    sizes = tuple(Size(name=f"n{i:0199}", value=1) for i in range(1000))
    workloads = tuple(Workload(name=f"{i}", sizes=sizes) for i in range(25))
    task = dataclasses.replace(TASK, workloads=workloads)
    request = dataclasses.replace(_request(), task=task)
    async with serving(FakeEvaluator(), way) as evaluator:
        verdict = await evaluator.evaluate(request)
    assert verdict.passed


def _failing(times: int, error: Exception) -> tuple[Callable[[], Awaitable[None]], list[None]]:
    tries: list[None] = []

    async def fail() -> None:
        tries.append(None)
        if len(tries) <= times:
            raise error

    return fail, tries


async def test_idempotent_call_is_tried_again(way: str) -> None:
    """With a request_id, UNAVAILABLE is retried until it works or the tries are used up."""
    options = CallOptions(retry=RetryPolicy(attempts=3, first_delay_s=0.01))
    fail, tries = _failing(2, ProcessLostError("judge died"))
    async with serving(FakeEvaluator(fail), way, options) as evaluator:
        await evaluator.evaluate(_request(request_id="1"))
        assert len(tries) == 3
    fail, tries = _failing(9, ProcessLostError("judge died"))
    async with serving(FakeEvaluator(fail), way, options) as evaluator:
        with pytest.raises(ProcessLostError):
            await evaluator.evaluate(_request(request_id="1"))
    assert len(tries) == 3


@pytest.mark.parametrize(
    ("error", "request_id"),
    [(ProcessLostError("judge died"), ""), (TaskInvalidError("no Model"), "1")],
    ids=["no-request-id", "not-unavailable"],
)
async def test_other_calls_are_tried_once(
    way: str, error: KernelFoundryError, request_id: str
) -> None:
    """What may not be repeated, or would fail again, is not."""
    options = CallOptions(retry=RetryPolicy(attempts=3, first_delay_s=0.01))
    fail, tries = _failing(9, error)
    async with serving(FakeEvaluator(fail), way, options) as evaluator:
        with pytest.raises(type(error)):
            await evaluator.evaluate(_request(request_id=request_id))
    assert len(tries) == 1


async def test_restarted_service_is_found_again(listen: str) -> None:
    """A client waits out a restart and goes on over the same object."""
    options = CallOptions(retry=RetryPolicy(first_delay_s=0.05))
    evaluator = RemoteEvaluator(listen, options)
    async with running([evaluator_service(FakeEvaluator())], listen):
        await evaluator.capabilities()
    waiting = asyncio.create_task(evaluator.capabilities())
    await asyncio.sleep(0.1)
    async with running([evaluator_service(FakeEvaluator())], listen):
        assert (await waiting).devices
        await evaluator.close()


@pytest.mark.parametrize("target", ["unix:/nowhere/s", "127.0.0.1:1"])
async def test_unreachable_service_is_named(target: str) -> None:
    evaluator = RemoteEvaluator(target, ONCE)
    with pytest.raises(ServiceUnavailableError, match=target) as caught:
        await evaluator.capabilities()
    assert caught.value.metadata == {"target": target}
    await evaluator.close()


class _Elsewhere(FakeEvaluator):
    """Answers with a verdict on something else than it was asked about."""

    def __init__(self, **changes: str) -> None:
        super().__init__()
        self._changes = changes

    async def evaluate(self, request: EvaluationRequest) -> Evaluation:
        return dataclasses.replace(await super().evaluate(request), **self._changes)


@pytest.mark.parametrize("text", ["nothing", "```sycl\n// x\n```\n\n```python\npass\n```\n"])
@pytest.mark.parametrize("what", ["candidate", "task"])
async def test_a_verdict_on_something_else_is_refused(way: str, what: str, text: str) -> None:
    """An evaluator may be somebody else's."""
    async with serving(FakeEvaluator(), way) as evaluator:
        assert (await evaluator.evaluate(_request(text))).task == TASK.digest
    async with serving(_Elsewhere(**{what: "0" * 64}), way) as evaluator:
        with pytest.raises(VerdictMismatchError) as caught:
            await evaluator.evaluate(_request(text))
    assert (caught.value.metadata["what"], caught.value.metadata["found"]) == (what, "0" * 64)
