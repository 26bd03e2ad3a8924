"""The generator as a gRPC service: messages in, the port's calls, messages out."""

# ruff: noqa: D102, N802 - the proto names and documents the methods

from typing import Any, Final

from grpc.aio import ServicerContext

from kernel_foundry.domain.admission import Admission
from kernel_foundry.domain.request import ProposalOutcome, ProposalRequest
from kernel_foundry.generator.v1 import generator_service_pb2 as pb2
from kernel_foundry.generator.v1 import generator_service_pb2_grpc as pb2_grpc
from kernel_foundry.ports import Generator
from kernel_foundry.rpc.field_paths import fields_within
from kernel_foundry.rpc.page_size import page_size
from kernel_foundry.rpc.server import Service
from kernel_foundry.wire.message import build, read_field

_Context = ServicerContext[Any, Any]

_MAX_PAGE: Final = 100
"""Exchanges of a page: prompt and reply have some hundred kilobytes together."""


class GeneratorServicer(pb2_grpc.GeneratorServiceServicer):
    """Adapts any `Generator` to gRPC; errors are mapped by the server's interceptor."""

    def __init__(self, generator: Generator) -> None:
        self._generator = generator

    async def ProposeCandidate(
        self, request: pb2.ProposeCandidateRequest, context: _Context
    ) -> pb2.ProposeCandidateResponse:
        asked = read_field(ProposalRequest, request, "request")
        with fields_within("request"):
            proposal = await self._generator.propose(asked)
        return build(pb2.ProposeCandidateResponse, proposal=proposal)

    async def ReportOutcome(
        self, request: pb2.ReportOutcomeRequest, context: _Context
    ) -> pb2.ReportOutcomeResponse:
        outcome = read_field(ProposalOutcome, request, "outcome")
        with fields_within("outcome"):
            await self._generator.report(outcome)
        return pb2.ReportOutcomeResponse()

    async def GetRunAccount(
        self, request: pb2.GetRunAccountRequest, context: _Context
    ) -> pb2.GetRunAccountResponse:
        account = await self._generator.account(request.run)
        return build(pb2.GetRunAccountResponse, account=account)

    async def ForgetRun(
        self, request: pb2.ForgetRunRequest, context: _Context
    ) -> pb2.ForgetRunResponse:
        await self._generator.forget_run(request.run)
        return pb2.ForgetRunResponse()

    async def RenameRun(
        self, request: pb2.RenameRunRequest, context: _Context
    ) -> pb2.RenameRunResponse:
        await self._generator.rename_run(request.run, request.new_name)
        return pb2.RenameRunResponse()

    async def ListExchanges(
        self, request: pb2.ListExchangesRequest, context: _Context
    ) -> pb2.ListExchangesResponse:
        limit = page_size(request.page_size, "page_size", most=_MAX_PAGE)
        found = await self._generator.exchanges(request.run, after=request.after, limit=limit)
        return build(pb2.ListExchangesResponse, exchanges=found)

    async def CheckModels(
        self, request: pb2.CheckModelsRequest, context: _Context
    ) -> pb2.CheckModelsResponse:
        await self._generator.check_models(tuple(request.models))
        return pb2.CheckModelsResponse()

    async def ListModelLimits(
        self, request: pb2.ListModelLimitsRequest, context: _Context
    ) -> pb2.ListModelLimitsResponse:
        admission = read_field(Admission, request, "admission")
        limits = await self._generator.model_limits(tuple(request.models), admission)
        return build(pb2.ListModelLimitsResponse, limits=limits)

    async def ListModels(
        self, request: pb2.ListModelsRequest, context: _Context
    ) -> pb2.ListModelsResponse:
        return pb2.ListModelsResponse(models=await self._generator.list_models())


def generator_service(generator: Generator) -> Service:
    """Return `generator` as a service; the server closes it at its end."""
    return Service(
        name=pb2.DESCRIPTOR.services_by_name["GeneratorService"].full_name,
        register=lambda server: pb2_grpc.add_GeneratorServiceServicer_to_server(
            GeneratorServicer(generator), server
        ),
        prepare=generator.list_models,
        close=generator.close,
    )
