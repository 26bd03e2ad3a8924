"""What a client does wrong, or a store cannot do: a status each, with its reason; nothing lost."""

import sqlite3
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import grpc
import pytest
from google.rpc.status_pb2 import Status

from archive_svc.archive import Archive
from archive_svc.service import archive_service
from kernel_foundry.archive.v1 import archive_service_pb2 as pb2
from kernel_foundry.archive.v1.archive_service_pb2_grpc import ArchiveServiceStub
from kernel_foundry.domain.archive import RunSpec
from kernel_foundry.domain.candidate import Candidate
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.errors import KernelFoundryError, StoreUnavailableError
from kernel_foundry.rpc.archive import RemoteArchive
from kernel_foundry.rpc.connection import CallOptions, RetryPolicy
from kernel_foundry.rpc.server import running
from kernel_foundry.rpc.status import DETAILS_KEY, from_rpc_error
from kernel_foundry.wire.message import build

Make = Callable[..., tuple[Candidate, Evaluation]]


@pytest.fixture
async def stub(tmp_path: Path, spec: RunSpec) -> AsyncIterator[ArchiveServiceStub]:
    """A bare client, which may send anything, of a service with two runs."""
    archive = Archive(f"sqlite:///{tmp_path / 'runs.db'}?timeout=0.2")
    await archive.create_run(spec)
    await archive.create_run(replace(spec, name="other"))
    async with (
        running([archive_service(archive)], f"unix:{tmp_path / 's'}", grace_s=1.0) as target,
        grpc.aio.insecure_channel(target) as channel,
    ):
        yield ArchiveServiceStub(channel)


def _request(make: Make, label: str = "a", **verdict: object) -> pb2.TellEvaluationRequest:
    candidate, evaluation = make(label, median_ns=500.0, **verdict)
    return build(
        pb2.TellEvaluationRequest,
        run="first",
        candidate=candidate,
        evaluation=evaluation,
        request_id=label,
    )


async def _told_count(stub: ArchiveServiceStub) -> int:
    return (await stub.GetStats(pb2.GetStatsRequest(run="first"))).stats.told_count


async def _refusal(
    stub: ArchiveServiceStub, request: pb2.TellEvaluationRequest
) -> tuple[grpc.StatusCode, KernelFoundryError]:
    """Return the code and the error of a tell that is refused, and leaves nothing behind."""
    before = await _told_count(stub)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await stub.TellEvaluation(request)
    assert await _told_count(stub) == before
    error = caught.value
    details = dict(error.trailing_metadata())[DETAILS_KEY]
    assert isinstance(details, bytes)
    assert Status.FromString(details).code == error.code().value[0]
    return error.code(), from_rpc_error(error, "s")


async def test_unknown_run(stub: ArchiveServiceStub, make: Make) -> None:
    request = _request(make)
    request.run = "unknown"
    code, error = await _refusal(stub, request)
    assert (code, error.reason) == (grpc.StatusCode.NOT_FOUND, "RUN_NOT_FOUND")


@pytest.mark.parametrize("level", [-1, 4, 2**40])
async def test_measures_outside_the_grid(stub: ArchiveServiceStub, make: Make, level: int) -> None:
    request = _request(make)
    request.evaluation.measures.memory = level
    code, error = await _refusal(stub, request)
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert error.metadata["field"] == "evaluation.measures"


@pytest.mark.parametrize("field", ["fitness", "optimistic_fitness"])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -0.5])
async def test_fitness_that_is_none(
    stub: ArchiveServiceStub, make: Make, field: str, value: float
) -> None:
    request = _request(make)
    setattr(request.evaluation, field, value)
    code, error = await _refusal(stub, request)
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert error.metadata["field"] == f"evaluation.{field}"


@pytest.mark.parametrize("median_ns", [float("nan"), float("inf"), 0.0, -1.0])
async def test_median_that_is_none(stub: ArchiveServiceStub, make: Make, median_ns: float) -> None:
    request = _request(make)
    request.evaluation.workloads[0].timing.median_ns = median_ns
    code, error = await _refusal(stub, request)
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert error.metadata["field"] == "evaluation.workloads"


async def test_parent_of_another_run(stub: ArchiveServiceStub, make: Make) -> None:
    parent = _request(make, "parent")
    parent.run = "other"
    await stub.TellEvaluation(parent)
    request = _request(make)
    request.candidate.parents.append(parent.evaluation.candidate)
    code, error = await _refusal(stub, request)
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert error.metadata["field"] == "candidate.parents"


async def test_verdict_on_another_source(stub: ArchiveServiceStub, make: Make) -> None:
    await stub.TellEvaluation(_request(make))
    request = _request(make, "b")
    request.candidate.source.device_code += "// changed behind the verdict's back"
    code, error = await _refusal(stub, request)
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert error.metadata["field"] == "evaluation.candidate"


async def test_request_id_of_another_candidate(stub: ArchiveServiceStub, make: Make) -> None:
    await stub.TellEvaluation(_request(make))
    request = _request(make, "b")
    request.request_id = "a"
    code, error = await _refusal(stub, request)
    assert (code, error.reason) == (grpc.StatusCode.ALREADY_EXISTS, "ALREADY_EXISTS")


async def test_locked_database(stub: ArchiveServiceStub, make: Make, tmp_path: Path) -> None:
    await stub.TellEvaluation(_request(make))
    lock = sqlite3.connect(tmp_path / "runs.db", isolation_level=None)
    lock.execute("BEGIN IMMEDIATE")
    code, error = await _refusal(stub, _request(make, "b"))
    assert (code, error.reason) == (grpc.StatusCode.UNAVAILABLE, "STORE_UNAVAILABLE")
    lock.close()
    await stub.TellEvaluation(_request(make, "b"))
    assert await _told_count(stub) == 2


async def test_client_says_why_its_time_ran_out(tmp_path: Path, spec: RunSpec, make: Make) -> None:
    """Tries that failed because the store is locked say so, though the last one was cut short."""
    archive = Archive(f"sqlite:///{tmp_path / 'runs.db'}?timeout=0.4")
    await archive.create_run(spec)
    target = f"unix:{tmp_path / 's'}"
    options = CallOptions(quick_deadline_s=0.7, retry=RetryPolicy(attempts=9, first_delay_s=0.01))
    async with running([archive_service(archive)], target, grace_s=1.0):
        remote = RemoteArchive(target, options)
        lock = sqlite3.connect(tmp_path / "runs.db", isolation_level=None)
        lock.execute("BEGIN IMMEDIATE")
        candidate, evaluation = make("a", median_ns=500.0)
        with pytest.raises(StoreUnavailableError, match="locked"):
            await remote.tell("first", candidate, evaluation, request_id="1")
        lock.close()
        await remote.close()
