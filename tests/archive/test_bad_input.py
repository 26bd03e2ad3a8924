"""What a client does wrong, or a store cannot do: a status each, with its reason; nothing lost."""

import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import grpc
import pytest
from google.rpc.status_pb2 import Status

from archive_svc.archive import LocalArchive
from archive_svc.service import archive_service
from archive_svc.store.insert import LARGEST_EVALUATION
from kernel_foundry.archive.v1 import archive_service_pb2 as pb2
from kernel_foundry.archive.v1.archive_service_pb2_grpc import ArchiveServiceStub
from kernel_foundry.domain.archive import Run, RunSpec
from kernel_foundry.domain.candidate import Candidate
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.domain.task_limits import LONGEST_REFERENCE
from kernel_foundry.errors import (
    CorruptArchiveError,
    InvalidArgumentError,
    KernelFoundryError,
    StoreUnavailableError,
)
from kernel_foundry.paths import report_path, sweeps_dir
from kernel_foundry.rpc.archive import RemoteArchive
from kernel_foundry.rpc.connection import CallOptions, RetryPolicy
from kernel_foundry.rpc.server import running
from kernel_foundry.rpc.status import DETAILS_KEY, from_rpc_error
from kernel_foundry.wire.message import build

Make = Callable[..., tuple[Candidate, Evaluation]]


@pytest.fixture
async def stub(tmp_path: Path, spec: RunSpec) -> AsyncIterator[ArchiveServiceStub]:
    """A bare client, which may send anything, of a service with two runs."""
    archive = LocalArchive(f"sqlite:///{tmp_path / 'runs.db'}?timeout=0.2")
    await archive.create_run(spec)
    await archive.create_run(replace(spec, name="other"))
    async with (
        running([archive_service(archive)], f"unix:{tmp_path / 's'}", grace_s=1.0) as target,
        grpc.aio.insecure_channel(target) as channel,
    ):
        yield ArchiveServiceStub(channel)


def _request(make: Make, label: str = "a", **verdict: object) -> pb2.AddEvaluationRequest:
    candidate, evaluation = make(label, median_ns=500.0, **verdict)
    return build(
        pb2.AddEvaluationRequest,
        run="first",
        candidate=candidate,
        evaluation=evaluation,
        request_id=label,
    )


async def _evaluation_count(stub: ArchiveServiceStub) -> int:
    return (await stub.GetStats(pb2.GetStatsRequest(run="first"))).stats.evaluation_count


async def _refusal(
    stub: ArchiveServiceStub, request: pb2.AddEvaluationRequest
) -> tuple[grpc.StatusCode, KernelFoundryError]:
    """Return code and error of an evaluation that is refused, and leaves nothing behind."""
    before = await _evaluation_count(stub)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await stub.AddEvaluation(request)
    assert await _evaluation_count(stub) == before
    error = caught.value
    details = dict(error.trailing_metadata())[DETAILS_KEY]
    assert isinstance(details, bytes)
    assert Status.FromString(details).code == error.code().value[0]
    return error.code(), from_rpc_error(error, "s")


@pytest.mark.parametrize("level", [-1, 4, 2**40])
async def test_measures_outside_the_grid(stub: ArchiveServiceStub, make: Make, level: int) -> None:
    request = _request(make)
    request.evaluation.measures.memory = level
    code, error = await _refusal(stub, request)
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert error.metadata["field"] == "evaluation.measures"


@pytest.mark.parametrize("field", ["fitness", "optimistic_fitness"])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -0.5, 1e308, 44.0])
async def test_fitness_that_is_none(
    stub: ArchiveServiceStub, make: Make, field: str, value: float
) -> None:
    request = _request(make)
    setattr(request.evaluation, field, value)
    code, error = await _refusal(stub, request)
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert error.metadata["field"] == f"evaluation.{field}"


async def test_verdict_on_another_task(stub: ArchiveServiceStub, make: Make) -> None:
    """Times are compared by the names of workloads."""
    for name in ("task", "workloads", "swept_count"):
        request = _request(make)
        if name == "task":
            request.evaluation.task = "0" * 64
        elif name == "workloads":
            request.evaluation.workloads[0].workload = "other"
        else:
            request.evaluation.swept_count = 10**9
        code, error = await _refusal(stub, request)
        assert code is grpc.StatusCode.INVALID_ARGUMENT
        assert error.metadata["field"] == f"evaluation.{name}"


async def test_verdict_that_no_answer_could_list(stub: ArchiveServiceStub, make: Make) -> None:
    request = _request(make)
    for _ in range(2):
        request.evaluation.compile.listings.add(text="x" * (LARGEST_EVALUATION // 2))
    code, error = await _refusal(stub, request)
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert error.metadata["field"] == "evaluation"


@pytest.mark.parametrize("median_ns", [float("nan"), float("inf"), 0.0, -1.0])
async def test_median_that_is_none(stub: ArchiveServiceStub, make: Make, median_ns: float) -> None:
    request = _request(make)
    request.evaluation.workloads[0].timing.median_ns = median_ns
    code, error = await _refusal(stub, request)
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert error.metadata["field"] == "evaluation.workloads"


@pytest.mark.parametrize(
    ("lower", "median", "upper"),
    [
        (1e-300, 1e-300, 1e308),
        (1e3, 1e3, 1e308),
        (2.0, 1.0, 3.0),
        (1.0, 3.0, 2.0),
        (-1.0, 1.0, 2.0),
        (1.0, 1e16, 1e16),
        (float("nan"), 1.0, 2.0),
    ],
)
@pytest.mark.parametrize("of", ["timing", "baseline"])
async def test_times_that_nobody_measured(
    stub: ArchiveServiceStub, make: Make, of: str, lower: float, median: float, upper: float
) -> None:
    request = _request(make)
    workload = request.evaluation.workloads[0]
    timing = workload.timing if of == "timing" else workload.baselines[0].timing
    timing.median_ns = median
    timing.ci95_ns[:] = [lower, upper]
    code, error = await _refusal(stub, request)
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert error.metadata["field"] == "evaluation.workloads"
    assert len((await stub.ListRuns(pb2.ListRunsRequest())).runs) == 2


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0, 1e300])
@pytest.mark.parametrize("name", ["prepare_ns", "prepare_limit_ns", "traffic_bound_ns"])
async def test_figures_that_nobody_measured(
    stub: ArchiveServiceStub, make: Make, name: str, value: float
) -> None:
    request = _request(make)
    setattr(request.evaluation.workloads[0], name, value)
    code, error = await _refusal(stub, request)
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert error.metadata["field"] == "evaluation.workloads"


@pytest.mark.parametrize("value", [float("nan"), -1.0, 1e300])
async def test_dates_of_no_calendar(stub: ArchiveServiceStub, make: Make, value: float) -> None:
    request = _request(make)
    request.evaluation.attestation.signed_unix_s = value
    code, error = await _refusal(stub, request)
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert error.metadata["field"] == "evaluation.attestation.signed_unix_s"


@pytest.mark.parametrize("length", [LONGEST_REFERENCE, LONGEST_REFERENCE + 1])
async def test_a_reference_is_bounded(stub: ArchiveServiceStub, spec: RunSpec, length: int) -> None:
    """Each is kept, and listed with its run."""
    long = replace(spec, name="long", task=replace(spec.task, reference="x" * length))
    request = build(pb2.CreateRunRequest, spec=long)
    if length == LONGEST_REFERENCE:
        await stub.CreateRun(request)
        return
    with pytest.raises(grpc.aio.AioRpcError, match=f"at most {LONGEST_REFERENCE}") as caught:
        await stub.CreateRun(request)
    assert from_rpc_error(caught.value, "s").metadata["field"] == "spec.task.reference"


async def test_a_page_of_runs_ends_where_it_was_asked_to(
    stub: ArchiveServiceStub, spec: RunSpec
) -> None:
    pages = []
    token = ""
    while not pages or token:
        page = await stub.ListRuns(pb2.ListRunsRequest(page_size=1, page_token=token))
        pages.append([run.spec.name for run in page.runs])
        token = page.next_page_token
    assert pages == [["other"], ["first"]]
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await stub.ListRuns(pb2.ListRunsRequest(page_token="no such run"))
    assert from_rpc_error(caught.value, "s").metadata["field"] == "page_token"


async def test_one_bad_row_hides_no_other_run(tmp_path: Path, spec: RunSpec, make: Make) -> None:
    """What an earlier version let in, or somebody else wrote into the store."""
    path = tmp_path / "runs.db"
    archive = LocalArchive(f"sqlite:///{path}")
    for name in ("absurd", "unread", "renamed", "good"):
        await archive.create_run(replace(spec, name=name))
        await archive.add(name, *make("a", median_ns=500.0), request_id="1")
    await archive.close()
    with closing(sqlite3.connect(path)) as store, store:
        runs = dict(store.execute("select name, id from runs"))
        (text,) = store.execute("select evaluation from evaluation_texts limit 1").fetchone()
        for name, new in (
            ("absurd", text.replace("1000.0", "1e-300").replace("1001.0", "1e308")),
            ("unread", "{"),
        ):
            assert new != text
            store.execute(
                "update evaluation_texts set evaluation = ? where run_id = ?", (new, runs[name])
            )
        (text,) = store.execute("select spec from runs where name = 'renamed'").fetchone()
        new = text.replace('"renamed"', '"../../index"')
        store.execute("update runs set spec = ? where name = 'renamed'", (new,))

    archive = LocalArchive(f"sqlite:///{path}")
    listed = {run.spec.name: run for run in await archive.list_runs()}
    assert list(listed) == ["good", "unread", "absurd"]
    assert listed["good"].best_speedup_interval is not None
    assert listed["unread"].best_speedup_interval is None
    with pytest.raises(CorruptArchiveError):
        await archive.get_run("renamed")
    await archive.delete_run("absurd")
    await archive.close()


@pytest.mark.parametrize("name", ["", "../../site/index", "a/b", "a" * 201])
async def test_a_service_names_no_run_so(
    tmp_path: Path, spec: RunSpec, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    archive = LocalArchive(f"sqlite:///{tmp_path / 'runs.db'}")
    run = await archive.create_run(spec)
    renamed = replace(run, spec=replace(spec, name=name))

    async def get_run(_: str) -> Run:
        return renamed

    async def list_runs(*, limit: int, page_token: str = "", mine: bool = False) -> tuple[Run, ...]:
        return (renamed,)

    monkeypatch.setattr(archive, "get_run", get_run)
    monkeypatch.setattr(archive, "list_runs", list_runs)
    async with running([archive_service(archive)], f"unix:{tmp_path / 's'}") as target:
        client = RemoteArchive(target)
        with pytest.raises(InvalidArgumentError) as caught:
            await client.get_run("first")
        assert caught.value.metadata == {"field": "run.spec.name"}
        with pytest.raises(InvalidArgumentError):
            await client.list_runs()
        await client.close()
    for path in (sweeps_dir, report_path):
        with pytest.raises(InvalidArgumentError):
            path(name)


async def test_locked_database(stub: ArchiveServiceStub, make: Make, tmp_path: Path) -> None:
    await stub.AddEvaluation(_request(make))
    lock = sqlite3.connect(tmp_path / "runs.db", isolation_level=None)
    lock.execute("BEGIN IMMEDIATE")
    code, error = await _refusal(stub, _request(make, "b"))
    assert (code, error.reason) == (grpc.StatusCode.UNAVAILABLE, "STORE_UNAVAILABLE")
    lock.close()
    await stub.AddEvaluation(_request(make, "b"))
    assert await _evaluation_count(stub) == 2


async def test_client_says_why_its_time_ran_out(tmp_path: Path, spec: RunSpec, make: Make) -> None:
    """Tries that failed because the store is locked say so, though the last one was cut short."""
    archive = LocalArchive(f"sqlite:///{tmp_path / 'runs.db'}?timeout=0.8")
    await archive.create_run(spec)
    target = f"unix:{tmp_path / 's'}"
    options = CallOptions(quick_deadline_s=3.0, retry=RetryPolicy(attempts=9, first_delay_s=0.01))
    async with running([archive_service(archive)], target, grace_s=1.0):
        remote = RemoteArchive(target, options)
        lock = sqlite3.connect(tmp_path / "runs.db", isolation_level=None)
        lock.execute("BEGIN IMMEDIATE")
        candidate, evaluation = make("a", median_ns=500.0)
        with pytest.raises(StoreUnavailableError, match="locked"):
            await remote.add("first", candidate, evaluation, request_id="1")
        lock.close()
        await remote.close()
