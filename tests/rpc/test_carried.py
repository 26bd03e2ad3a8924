"""Our service behind somebody else's ingress, without Ray: what a client sees is the same."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import pytest

from evaluator_svc.ray_app import DeviceClass
from evaluator_svc.service import SERVICE, evaluator_service
from kernel_foundry.domain.admission import Admission
from kernel_foundry.domain.candidate import KernelSource
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.request import EvaluationRequest
from kernel_foundry.domain.sweep import ConfigurationResult, SweepRequest
from kernel_foundry.domain.task import Task, Workload
from kernel_foundry.errors import (
    DeviceBusyError,
    InvalidArgumentError,
    KernelFoundryError,
    PermissionDeniedError,
    QuotaExceededError,
    ServiceUnavailableError,
    TaskInvalidError,
    UnauthenticatedError,
)
from kernel_foundry.rpc.carried import CarriedService
from kernel_foundry.rpc.connection import CallOptions, RetryPolicy
from kernel_foundry.rpc.evaluator import RemoteEvaluator
from kernel_foundry.rpc.guards import Guards
from kernel_foundry.rpc.security import ServerSecurity
from kernel_foundry.rpc.server import NO_SECURITY, running
from kernel_foundry.rpc.status import from_rpc_error
from kernel_foundry.rpc.tokens import Role, TokenFile
from kernel_foundry.testing.evaluator import FakeEvaluator
from tests.rpc.ingress import carrying

ONCE = CallOptions(retry=RetryPolicy(attempts=1))
TASK = Task(name="t", reference="class Model: ...", workloads=(Workload(name="default"),))
SOURCE = KernelSource(
    language=Language.SYCL,
    device_code="",
    plan="TUNE = {'BLOCK': [1, 2, 3]}\n\ndef launch(out):\n    pass",
)
REQUEST = EvaluationRequest(task=TASK, device="", source=SOURCE)
SWEEP = SweepRequest(task=TASK, device="", source=SOURCE)


@asynccontextmanager
async def at(
    evaluator: FakeEvaluator,
    *,
    carried: bool = True,
    security: ServerSecurity = NO_SECURITY,
    most: int = 1 << 30,
) -> AsyncIterator[str]:
    service = evaluator_service(evaluator)
    if not carried:
        async with running([service], "127.0.0.1:0", security=security) as target:
            yield target
        return
    guards = Guards(security, asks_for_tokens=True)
    async with carrying(CarriedService(service, guards.interceptors), most=most) as target:
        yield target
    guards.close()


class Failing(FakeEvaluator):
    """Every call fails, a sweep after as many results as `after`."""

    def __init__(self, error: Exception, after: int = 0) -> None:
        super().__init__()
        self._error = error
        self._after = after

    async def admit(self, task: Task, device: str = "") -> Admission:
        raise self._error

    async def sweep(self, request: SweepRequest) -> AsyncGenerator[ConfigurationResult, None]:
        count = 0
        async for result in super().sweep(request):
            if count == self._after:
                break
            count += 1
            yield result
        raise self._error


async def _failures(target: str) -> list[tuple[type[KernelFoundryError], str, dict[str, str]]]:
    """How a call and a sweep end for a client."""
    told = []
    client = RemoteEvaluator(target, ONCE)
    try:
        await client.admit(TASK)
    except KernelFoundryError as error:
        told.append((type(error), error.message, error.metadata))
    try:
        async for _ in client.sweep(SWEEP):  # gRPC may drop results that an error overtakes
            pass
    except KernelFoundryError as error:
        told.append((type(error), error.message, error.metadata))
    await client.close()
    return told


@pytest.mark.parametrize("after", [0, 2])
@pytest.mark.parametrize(
    "error",
    [
        TaskInvalidError("no Model", task="t"),
        DeviceBusyError("66 calls wait", pending="66"),
        QuotaExceededError("used up", user="ada"),
        TaskInvalidError("ü" * 5000, trace="x" * 5000),
    ],
    ids=["task", "busy", "quota", "long"],
)
async def test_errors_arrive_as_from_our_own_server(error: Exception, after: int) -> None:
    """With their class, message and values, also after results of a sweep."""
    seen = []
    for carried in (False, True):
        async with at(Failing(error, after), carried=carried) as target:
            seen.append(await _failures(target))
    assert seen[0] == seen[1]
    assert len(seen[1]) == 2


async def test_a_bug_leaks_no_text() -> None:
    """As from our own server: an id, and the text in the log."""
    async with at(Failing(RuntimeError("secret"))) as target:
        ((kind, message, metadata), _) = await _failures(target)
    assert kind is KernelFoundryError
    assert "secret" not in message
    assert metadata["id"] in message


async def test_verdicts_and_sweeps_pass() -> None:
    async with at(FakeEvaluator()) as target:
        client = RemoteEvaluator(target, ONCE)
        assert (await client.evaluate(REQUEST)).passed
        assert len([result async for result in client.sweep(SWEEP)]) == 3
        await client.close()


async def test_callers_are_known_by_their_tokens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Roles and quotas hold, and each call is in the audit log, whoever carries it."""
    security = ServerSecurity(tokens=tmp_path / "t.json", audit_log=tmp_path / "audit.jsonl")
    file = TokenFile(tmp_path / "t.json")
    tokens = {
        "none": "",
        "read": file.create("eve", Role.READ, 1),
        "run": file.create("ada", Role.RUN, 1, evaluations=1),
    }
    told: dict[str, list[type[Exception] | None]] = {}
    async with at(FakeEvaluator(), security=security) as target:
        for name, token in tokens.items():
            monkeypatch.setenv("KERNEL_FOUNDRY_TOKEN", token)
            client = RemoteEvaluator(target, ONCE)
            told[name] = []
            for _ in range(2):
                try:
                    await client.evaluate(REQUEST)
                    told[name].append(None)
                except KernelFoundryError as error:
                    told[name].append(type(error))
            await client.close()
    assert told == {
        "none": [UnauthenticatedError, UnauthenticatedError],
        "read": [PermissionDeniedError, PermissionDeniedError],
        "run": [None, QuotaExceededError],
    }
    lines = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
    assert [line["outcome"] for line in lines][-2:] == ["OK", "RESOURCE_EXHAUSTED"]


async def test_bytes_that_are_no_message_and_methods_that_are_none_are_refused() -> None:
    path = f"/{SERVICE.full_name}/AdmitTask"
    async with at(FakeEvaluator()) as target, grpc.aio.insecure_channel(target) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await channel.unary_unary(path)(b"\xff\xff")
        error = from_rpc_error(caught.value, target)
    assert isinstance(error, InvalidArgumentError)
    assert error.metadata == {"field": "request"}


async def test_a_full_queue_of_the_ingress_is_a_busy_device() -> None:
    """Such a status has no details of ours; a call that may be repeated is tried again."""
    async with at(FakeEvaluator(), most=1) as target:
        policy = RetryPolicy(attempts=3, first_delay_s=0.01)
        client = RemoteEvaluator(target, CallOptions(retry=policy))
        await client.capabilities()
        with pytest.raises(DeviceBusyError):
            await client.capabilities()
        await client.close()


async def test_a_caller_who_leaves_ends_the_call() -> None:
    began, left = asyncio.Event(), asyncio.Event()

    class Held(FakeEvaluator):
        async def evaluate(self, request: EvaluationRequest) -> Evaluation:
            began.set()
            try:
                return await asyncio.Future()
            finally:
                left.set()

    async with at(Held()) as target:
        client = RemoteEvaluator(target, ONCE)
        call = asyncio.create_task(client.evaluate(REQUEST))
        await began.wait()
        call.cancel()
        await left.wait()
        await client.close()


async def test_a_target_names_its_application() -> None:
    """As `host:port/application`, which every call of its connection brings."""
    seen: list[str] = []

    class Noting(grpc.aio.ServerInterceptor):
        async def intercept_service(self, continuation, handler_call_details):
            metadata = dict(handler_call_details.invocation_metadata)
            seen.append(metadata.get("application", ""))
            return await continuation(handler_call_details)

    async with carrying(CarriedService(evaluator_service(FakeEvaluator()), (Noting(),))) as target:
        for suffix in ("", "/h200"):
            client = RemoteEvaluator(f"{target}{suffix}", ONCE)
            await client.capabilities()
            await client.close()
    assert seen == ["", "h200"]


async def test_calls_for_another_application_are_refused() -> None:
    """An ingress hands them to the only one that is left: another class of devices."""
    carried = CarriedService(evaluator_service(FakeEvaluator()), (), "sycl")
    async with carrying(carried) as target:
        told: list[object] = []
        for suffix in ("", "/sycl", "/h200"):
            client = RemoteEvaluator(f"{target}{suffix}", ONCE)
            try:
                told.append(len((await client.capabilities()).devices))
            except ServiceUnavailableError as error:
                told.append(error.metadata)
            await client.close()
    assert told == [1, 1, {"target": "h200"}]


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({}, "device"),
        ({"device": 3}, "device"),
        ({"device": "sycl", "gpus": 1}, "gpus"),
        ({"device": "sycl", "min_replicas": 2}, "replicas"),
        ({"device": "sycl", "max_replicas": True}, "max_replicas"),
    ],
)
def test_arguments_that_are_none_of_a_class_are_refused(
    arguments: dict[str, object], field: str
) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        DeviceClass.from_arguments(arguments)
    assert caught.value.metadata["field"] == field


def test_a_number_of_cores_may_be_whole() -> None:
    assert DeviceClass.from_arguments({"device": "sycl", "cpus": 8}).cpus == 8
