"""The evaluator as a gRPC service: messages in, the port's calls, messages out."""

# ruff: noqa: D102, N802 - the proto names and documents the methods

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any, Final

from grpc.aio import ServicerContext

from kernel_foundry.common.v1 import candidate_pb2
from kernel_foundry.domain.candidate import LONGEST_CANDIDATE
from kernel_foundry.domain.digest import content_digest
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.domain.foreign import ForeignRequest
from kernel_foundry.domain.request import EvaluationRequest
from kernel_foundry.domain.sweep import SweepRequest
from kernel_foundry.domain.task import Task
from kernel_foundry.domain.unreadable_candidate import unreadable_candidate, unreadable_sweep
from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.evaluator.v1 import evaluator_service_pb2 as pb2
from kernel_foundry.evaluator.v1 import evaluator_service_pb2_grpc as pb2_grpc
from kernel_foundry.plan.candidate_text import ExtractionError, split
from kernel_foundry.ports import Evaluator
from kernel_foundry.rpc.field_paths import fields_within
from kernel_foundry.rpc.server import Service
from kernel_foundry.wire.message import build, read_field, to_message

_Context = ServicerContext[Any, Any]


SERVICE: Final = pb2.DESCRIPTOR.services_by_name["EvaluatorService"]


class EvaluatorServicer(pb2_grpc.EvaluatorServiceServicer):
    """Adapts any `Evaluator` to gRPC; errors are mapped by the server's interceptor."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator

    async def GetCapabilities(
        self, request: pb2.GetCapabilitiesRequest, context: _Context
    ) -> pb2.GetCapabilitiesResponse:
        capabilities = await self._evaluator.capabilities()
        return build(pb2.GetCapabilitiesResponse, capabilities=capabilities)

    async def AdmitTask(
        self, request: pb2.AdmitTaskRequest, context: _Context
    ) -> pb2.AdmitTaskResponse:
        task = read_field(Task, request, "task")
        admission = await self._evaluator.admit(task, request.device)
        return build(pb2.AdmitTaskResponse, admission=admission)

    async def EvaluateKernel(
        self, request: pb2.EvaluateKernelRequest, context: _Context
    ) -> pb2.EvaluateKernelResponse:
        evaluation = await self._evaluation(request)
        return build(
            pb2.EvaluateKernelResponse,
            evaluation=evaluation,
            speedup=evaluation.speedup,
            speedup_eager=evaluation.speedup_eager,
            speedup_interval=evaluation.speedup_interval,
            speedup_eager_interval=evaluation.speedup_eager_interval,
        )

    async def EvaluateForeign(
        self, request: pb2.EvaluateForeignRequest, context: _Context
    ) -> pb2.EvaluateForeignResponse:
        asked = read_field(ForeignRequest, request, "request")
        with fields_within("request"):
            evaluation = await self._evaluator.evaluate_foreign(asked)
        return build(pb2.EvaluateForeignResponse, evaluation=evaluation)

    async def SweepKernel(
        self, request: pb2.SweepKernelRequest, context: _Context
    ) -> AsyncIterator[pb2.SweepKernelResponse]:
        try:
            _read_text(request)
        except ExtractionError as error:
            yield build(pb2.SweepKernelResponse, result=unreadable_sweep(error.message))
            return
        asked = read_field(SweepRequest, request, "request")
        # Closed when the caller goes away, so that the sweep ends too.
        with fields_within("request"):
            async with aclosing(self._evaluator.sweep(asked)) as results:
                async for result in results:
                    yield build(pb2.SweepKernelResponse, result=result)

    async def _evaluation(self, request: pb2.EvaluateKernelRequest) -> Evaluation:
        try:
            _read_text(request)
        except ExtractionError as error:
            with fields_within("request"):
                task = read_field(Task, request.request, "task")
            digest, device = content_digest(request.text), request.request.device
            return unreadable_candidate(digest, error.message, task, device)
        asked = read_field(EvaluationRequest, request, "request")
        with fields_within("request"):
            return await self._evaluator.evaluate(asked)

    async def ProbeHost(
        self, request: pb2.ProbeHostRequest, context: _Context
    ) -> pb2.ProbeHostResponse:
        probes = await self._evaluator.probe(request.device)
        return build(pb2.ProbeHostResponse, probes=probes)


def _read_text(request: pb2.EvaluateKernelRequest | pb2.SweepKernelRequest) -> None:
    """Put the source that a request gives as Markdown where it belongs.

    Raises:
        ExtractionError: the text holds no candidate.
        InvalidArgumentError: it is too long, or there is a source as well.
    """
    if not request.text:
        return
    if request.request.HasField("source"):
        raise InvalidArgumentError("text: request.source is given as well", field="text")
    if len(request.text) > LONGEST_CANDIDATE:
        raise InvalidArgumentError(
            f"text: {len(request.text)} characters, expected at most {LONGEST_CANDIDATE}",
            field="text",
        )
    request.request.source.CopyFrom(to_message(split(request.text), candidate_pb2.KernelSource))


def evaluator_service(evaluator: Evaluator) -> Service:
    """Return `evaluator` as a service; the server closes it at its end."""
    return Service(
        name=SERVICE.full_name,
        register=lambda server: pb2_grpc.add_EvaluatorServiceServicer_to_server(
            EvaluatorServicer(evaluator), server
        ),
        prepare=evaluator.capabilities,  # the device probe
        close=evaluator.close,
    )
