"""The evaluator as a gRPC service: messages in, the port's calls, messages out."""

# ruff: noqa: D102, N802 - the proto names and documents the methods

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

from grpc.aio import ServicerContext

from kernel_foundry.domain.request import EvaluationRequest
from kernel_foundry.domain.sweep import SweepRequest
from kernel_foundry.domain.task import Task
from kernel_foundry.evaluator.v1 import evaluator_service_pb2 as pb2
from kernel_foundry.evaluator.v1 import evaluator_service_pb2_grpc as pb2_grpc
from kernel_foundry.ports import Evaluator
from kernel_foundry.rpc.server import Service
from kernel_foundry.wire.message import build, read_field

_Context = ServicerContext[Any, Any]


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
        asked = read_field(EvaluationRequest, request, "request")
        evaluation = await self._evaluator.evaluate(asked)
        return build(
            pb2.EvaluateKernelResponse,
            evaluation=evaluation,
            speedup=evaluation.speedup,
            speedup_eager=evaluation.speedup_eager,
            speedup_interval=evaluation.speedup_interval,
            speedup_eager_interval=evaluation.speedup_eager_interval,
        )

    async def SweepKernel(
        self, request: pb2.SweepKernelRequest, context: _Context
    ) -> AsyncIterator[pb2.SweepKernelResponse]:
        asked = read_field(SweepRequest, request, "request")
        # Closed when the caller goes away, so that the sweep ends too.
        async with aclosing(self._evaluator.sweep(asked)) as results:
            async for result in results:
                yield build(pb2.SweepKernelResponse, result=result)

    async def ProbeHost(
        self, request: pb2.ProbeHostRequest, context: _Context
    ) -> pb2.ProbeHostResponse:
        probes = await self._evaluator.probe(request.device)
        return build(pb2.ProbeHostResponse, probes=probes)


def evaluator_service(evaluator: Evaluator) -> Service:
    """Return `evaluator` as a service; the server closes it at its end."""
    return Service(
        name=pb2.DESCRIPTOR.services_by_name["EvaluatorService"].full_name,
        register=lambda server: pb2_grpc.add_EvaluatorServiceServicer_to_server(
            EvaluatorServicer(evaluator), server
        ),
        prepare=evaluator.capabilities,  # the device probe
        close=evaluator.close,
    )
