"""Fields in refusals: on the wire a path from the request, to clients of ours the port's name."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from archive_svc.archive import LocalArchive
from archive_svc.service import archive_service
from evaluator_svc.requests.request_limits import check_evaluation, check_sweep
from evaluator_svc.service import evaluator_service
from generator_svc.service import generator_service
from kernel_foundry.archive.v1 import archive_service_pb2 as archive_pb2
from kernel_foundry.archive.v1.archive_service_pb2_grpc import ArchiveServiceStub
from kernel_foundry.domain.candidate import KernelSource
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.request import EvaluationLimits, EvaluationRequest
from kernel_foundry.domain.sweep import SweepRequest
from kernel_foundry.domain.task import Task
from kernel_foundry.errors import InvalidArgumentError, KernelFoundryError, TaskInvalidError
from kernel_foundry.evaluator.v1 import evaluator_service_pb2 as evaluator_pb2
from kernel_foundry.evaluator.v1.evaluator_service_pb2_grpc import EvaluatorServiceStub
from kernel_foundry.generator.v1 import generator_service_pb2 as generator_pb2
from kernel_foundry.generator.v1.generator_service_pb2_grpc import GeneratorServiceStub
from kernel_foundry.rpc.archive import RemoteArchive
from kernel_foundry.rpc.evaluator import RemoteEvaluator
from kernel_foundry.rpc.server import running
from kernel_foundry.rpc.status import from_rpc_error
from kernel_foundry.testing.evaluator import FakeEvaluator
from kernel_foundry.testing.generator import FakeGenerator
from kernel_foundry.wire.message import build
from tests.domain_values import run_spec

REQUEST = EvaluationRequest(
    task=Task(name="t", reference="class Model: ..."),
    device="",
    source=KernelSource(language=Language.SYCL, device_code="", plan="nothing"),
    limits=EvaluationLimits(run_seconds=0.0),
)
SWEEP = SweepRequest(task=REQUEST.task, device="", source=REQUEST.source, seconds=0.0)
NO_TASK = EvaluationRequest(task=Task(name="t", reference=""), device="", source=REQUEST.source)


class _Checking(FakeEvaluator):
    """Refuses what the real one does; the fake itself knows a task without a model."""

    async def evaluate(self, request: EvaluationRequest) -> Any:
        check_evaluation(request)
        return await super().evaluate(request)

    def sweep(self, request: SweepRequest) -> Any:
        check_sweep(request)
        return super().sweep(request)


@pytest.fixture
async def target(tmp_path: Path) -> AsyncIterator[str]:
    """Where all three services are."""
    services = (
        archive_service(LocalArchive(f"sqlite:///{tmp_path}/runs.db")),
        evaluator_service(_Checking()),
        generator_service(FakeGenerator()),
    )
    async with running(services, f"unix:{tmp_path}/s", grace_s=1.0) as target:
        yield target


async def _refused(call: Any) -> KernelFoundryError:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return from_rpc_error(caught.value, "")


async def test_a_bare_client_reads_paths_from_its_request(target: str) -> None:
    async with grpc.aio.insecure_channel(target) as channel:
        evaluator, archive = EvaluatorServiceStub(channel), ArchiveServiceStub(channel)
        evaluate = evaluator_pb2.EvaluateKernelRequest
        bad_run = build(archive_pb2.CreateRunRequest, spec=run_spec(strategy="no"))
        exchanges = generator_pb2.ListExchangesRequest(run="r", page_size=-1)
        calls = {
            "request.limits.run_seconds": evaluator.EvaluateKernel(
                build(evaluate, request=REQUEST)
            ),
            "request.seconds": evaluator.SweepKernel(
                build(evaluator_pb2.SweepKernelRequest, request=SWEEP)
            ).read(),
            "request.task": evaluator.EvaluateKernel(build(evaluate, request=NO_TASK)),
            "task": evaluator.AdmitTask(build(evaluator_pb2.AdmitTaskRequest, task=NO_TASK.task)),
            "spec.strategy": archive.CreateRun(bad_run),
            "page_size": GeneratorServiceStub(channel).ListExchanges(exchanges),
        }
        for field, call in calls.items():
            error = await _refused(call)
            assert error.metadata["field"] == field
            is_of_task = field in ("task", "request.task")
            assert isinstance(error, TaskInvalidError if is_of_task else InvalidArgumentError)


async def test_a_client_of_ours_has_the_names_of_the_port(target: str) -> None:
    """Whoever asks cannot tell whether the service is in another process."""
    evaluator, archive = RemoteEvaluator(target), RemoteArchive(target)
    calls = {
        "limits.run_seconds": evaluator.evaluate(REQUEST),
        "seconds": anext(evaluator.sweep(SWEEP)),
        "task": evaluator.evaluate(NO_TASK),
        "strategy": archive.create_run(run_spec(strategy="no")),
    }
    for field, call in calls.items():
        with pytest.raises((InvalidArgumentError, TaskInvalidError)) as caught:
            await call
        assert caught.value.metadata["field"] == field
    for client in (evaluator, archive):
        await client.close()


async def test_no_size_of_a_page_is_the_services_choice(target: str) -> None:
    async with grpc.aio.insecure_channel(target) as channel:
        archive = ArchiveServiceStub(channel)
        await archive.CreateRun(build(archive_pb2.CreateRunRequest, spec=run_spec("r")))
        for list_, request in (
            (archive.ListEvaluations, archive_pb2.ListEvaluationsRequest),
            (archive.ListTransitions, archive_pb2.ListTransitionsRequest),
            (archive.ListSteering, archive_pb2.ListSteeringRequest),
        ):
            assert await list_(request(run="r")) is not None
            refused = await _refused(list_(request(run="r", limit=-1)))
            assert refused.metadata["field"] == "limit"
