"""The archive as a gRPC service: messages in, the port's calls, messages out."""

# ruff: noqa: D102, N802 - the proto names and documents the methods

from typing import Any

from grpc.aio import ServicerContext

from kernel_foundry.archive.v1 import archive_service_pb2 as pb2
from kernel_foundry.archive.v1 import archive_service_pb2_grpc as pb2_grpc
from kernel_foundry.domain.archive import Run, RunSpec, RunState
from kernel_foundry.domain.candidate import Candidate
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.ports import Archive
from kernel_foundry.rpc.server import Service
from kernel_foundry.wire.message import build, read_field

_Context = ServicerContext[Any, Any]

_PAGE_SIZE = 100
"""The most runs or told evaluations of one answer; keeps it below the message limit."""


class ArchiveServicer(pb2_grpc.ArchiveServiceServicer):
    """Adapts any `Archive` to gRPC; errors are mapped by the server's interceptor."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive

    async def CreateRun(
        self, request: pb2.CreateRunRequest, context: _Context
    ) -> pb2.CreateRunResponse:
        run = await self._archive.create_run(read_field(RunSpec, request, "spec"))
        return build(pb2.CreateRunResponse, run=run)

    async def GetRun(self, request: pb2.GetRunRequest, context: _Context) -> pb2.GetRunResponse:
        return build(pb2.GetRunResponse, run=await self._archive.get_run(request.name))

    async def ListRuns(
        self, request: pb2.ListRunsRequest, context: _Context
    ) -> pb2.ListRunsResponse:
        runs = await self._archive.list_runs()
        start = _page_start(runs, request.page_token)
        end = start + _page_size(request.page_size, "page_size")
        return build(
            pb2.ListRunsResponse,
            runs=runs[start:end],
            next_page_token=runs[end - 1].spec.name if end < len(runs) else "",
        )

    async def FinishRun(
        self, request: pb2.FinishRunRequest, context: _Context
    ) -> pb2.FinishRunResponse:
        state = read_field(RunState, request, "state")
        run = await self._archive.finish_run(request.name, state)
        return build(pb2.FinishRunResponse, run=run)

    async def SelectParents(
        self, request: pb2.SelectParentsRequest, context: _Context
    ) -> pb2.SelectParentsResponse:
        selection = await self._archive.select(request.run)
        return build(pb2.SelectParentsResponse, selection=selection)

    async def TellEvaluation(
        self, request: pb2.TellEvaluationRequest, context: _Context
    ) -> pb2.TellEvaluationResponse:
        result = await self._archive.tell(
            request.run,
            read_field(Candidate, request, "candidate"),
            read_field(Evaluation, request, "evaluation"),
            request_id=request.request_id,
            cost_usd=request.cost_usd,
        )
        return build(pb2.TellEvaluationResponse, result=result)

    async def ListElites(
        self, request: pb2.ListElitesRequest, context: _Context
    ) -> pb2.ListElitesResponse:
        return build(pb2.ListElitesResponse, elites=await self._archive.elites(request.run))

    async def ListEvaluations(
        self, request: pb2.ListEvaluationsRequest, context: _Context
    ) -> pb2.ListEvaluationsResponse:
        told = await self._archive.evaluations(
            request.run, after=request.after, limit=min(request.limit, _PAGE_SIZE)
        )
        return build(pb2.ListEvaluationsResponse, evaluations=told)

    async def GetStats(
        self, request: pb2.GetStatsRequest, context: _Context
    ) -> pb2.GetStatsResponse:
        return build(pb2.GetStatsResponse, stats=await self._archive.stats(request.run))


def archive_service(archive: Archive) -> Service:
    """Return `archive` as a service; the server closes it at its end."""
    return Service(
        name=pb2.DESCRIPTOR.services_by_name["ArchiveService"].full_name,
        register=lambda server: pb2_grpc.add_ArchiveServiceServicer_to_server(
            ArchiveServicer(archive), server
        ),
        prepare=archive.list_runs,  # opens the store, so that a bad one never reports SERVING
        close=archive.close,
    )


def _page_size(asked: int, field: str) -> int:
    if asked < 0:
        raise InvalidArgumentError(f"{field} is {asked}, expected >= 0", field=field)
    return min(asked or _PAGE_SIZE, _PAGE_SIZE)


def _page_start(runs: tuple[Run, ...], page_token: str) -> int:
    # The token is the name of the run before the page: new runs do not shift it.
    if not page_token:
        return 0
    for index, run in enumerate(runs):
        if run.spec.name == page_token:
            return index + 1
    raise InvalidArgumentError(f"page_token {page_token!r} is unknown", field="page_token")
