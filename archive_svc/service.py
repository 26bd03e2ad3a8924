"""The archive as a gRPC service: messages in, the port's calls, messages out."""

# ruff: noqa: D102, N802 - the proto names and documents the methods

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from typing import Any

from google.protobuf.message import Message
from grpc.aio import ServicerContext

from kernel_foundry.archive.v1 import archive_service_pb2 as pb2
from kernel_foundry.archive.v1 import archive_service_pb2_grpc as pb2_grpc
from kernel_foundry.domain.archive import Elite, LeaseHolder, RunBudget, RunSpec, RunState
from kernel_foundry.domain.candidate import Candidate
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.domain.steering import Steering
from kernel_foundry.errors import InvalidArgumentError, TooManyWatchersError
from kernel_foundry.ports import Archive
from kernel_foundry.rpc.draining import until_set
from kernel_foundry.rpc.field_paths import fields_within
from kernel_foundry.rpc.page_size import page_size
from kernel_foundry.rpc.server import Service
from kernel_foundry.wire.elites import EliteMessages
from kernel_foundry.wire.message import build, read_field

_Context = ServicerContext[Any, Any]

_PAGE_SIZE = 100
"""The most runs, elites or evaluations of one answer."""

_PAGE_BYTES = 32 * 1024 * 1024
"""Where a page of runs or candidates ends, however few they are: texts may be large."""

_MOST_WATCHERS = 500
"""Event streams open at a time: each looks for what other processes added twice a second, in the
threads that all reads share."""

_TRANSITIONS_PAGE_SIZE = 1000
"""The most transitions of one answer; each is a few hundred bytes."""


class ArchiveServicer(pb2_grpc.ArchiveServiceServicer):
    """Adapts any `Archive` to gRPC; errors are mapped by the server's interceptor."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._elites = EliteMessages()
        self._draining = asyncio.Event()
        self._watcher_count = 0

    def drain(self) -> None:
        """End all streams: those who watch would stay as long as their runs go on."""
        self._draining.set()

    async def CreateRun(
        self, request: pb2.CreateRunRequest, context: _Context
    ) -> pb2.CreateRunResponse:
        spec = read_field(RunSpec, request, "spec")
        with fields_within("spec"):
            run = await self._archive.create_run(spec)
        return build(pb2.CreateRunResponse, run=run)

    async def GetRun(self, request: pb2.GetRunRequest, context: _Context) -> pb2.GetRunResponse:
        return build(pb2.GetRunResponse, run=await self._archive.get_run(request.name))

    async def ListRuns(
        self, request: pb2.ListRunsRequest, context: _Context
    ) -> pb2.ListRunsResponse:
        size = page_size(request.page_size, "page_size", most=_PAGE_SIZE)
        runs = await self._archive.list_runs(
            limit=size + 1, page_token=request.page_token, mine=request.mine
        )
        response = build(pb2.ListRunsResponse, runs=runs[:size])
        del response.runs[_fitting(response.runs) :]
        # The token is the name of the run before the page: new runs do not shift it.
        has_more = len(response.runs) < len(runs)
        response.next_page_token = response.runs[-1].spec.name if has_more else ""
        return response

    async def HoldRun(self, request: pb2.HoldRunRequest, context: _Context) -> pb2.HoldRunResponse:
        holder = read_field(LeaseHolder, request, "holder")
        has_budget = request.HasField("budget")
        budget = read_field(RunBudget, request, "budget") if has_budget else RunBudget()
        run = await self._archive.hold_run(request.name, holder, budget)
        return build(pb2.HoldRunResponse, run=run)

    async def FinishRun(
        self, request: pb2.FinishRunRequest, context: _Context
    ) -> pb2.FinishRunResponse:
        state = read_field(RunState, request, "state")
        holder = read_field(LeaseHolder, request, "holder") if request.HasField("holder") else None
        run = await self._archive.finish_run(request.name, state, holder=holder)
        return build(pb2.FinishRunResponse, run=run)

    async def DeleteRun(
        self, request: pb2.DeleteRunRequest, context: _Context
    ) -> pb2.DeleteRunResponse:
        await self._archive.delete_run(request.name)
        return pb2.DeleteRunResponse()

    async def RenameRun(
        self, request: pb2.RenameRunRequest, context: _Context
    ) -> pb2.RenameRunResponse:
        run = await self._archive.rename_run(request.name, request.new_name)
        return build(pb2.RenameRunResponse, run=run)

    async def SteerRun(
        self, request: pb2.SteerRunRequest, context: _Context
    ) -> pb2.SteerRunResponse:
        steering = read_field(Steering, request, "steering")
        return build(pb2.SteerRunResponse, event=await self._archive.steer(request.run, steering))

    async def ListSteering(
        self, request: pb2.ListSteeringRequest, context: _Context
    ) -> pb2.ListSteeringResponse:
        events = await self._archive.steering(
            request.run,
            after=request.after,
            limit=page_size(request.limit, "limit", most=_PAGE_SIZE),
        )
        response = build(pb2.ListSteeringResponse, events=events)
        del response.events[_fitting(response.events) :]
        return response

    async def SelectParents(
        self, request: pb2.SelectParentsRequest, context: _Context
    ) -> pb2.SelectParentsResponse:
        selection = await self._archive.select(request.run, strategy=request.strategy)
        return pb2.SelectParentsResponse(selection=self._elites.selection_to_message(selection))

    async def DropSelection(
        self, request: pb2.DropSelectionRequest, context: _Context
    ) -> pb2.DropSelectionResponse:
        await self._archive.drop_selection(request.run, request.selection)
        return pb2.DropSelectionResponse()

    async def AddEvaluation(
        self, request: pb2.AddEvaluationRequest, context: _Context
    ) -> pb2.AddEvaluationResponse:
        result = await self._archive.add(
            request.run,
            read_field(Candidate, request, "candidate"),
            read_field(Evaluation, request, "evaluation"),
            request_id=request.request_id,
            cost_usd=request.cost_usd,
            selection=request.selection if request.HasField("selection") else None,
        )
        return build(pb2.AddEvaluationResponse, result=result)

    async def ListElites(
        self, request: pb2.ListElitesRequest, context: _Context
    ) -> pb2.ListElitesResponse:
        size = page_size(request.page_size, "page_size", most=_PAGE_SIZE)
        # Without a token only the best are looked up: a loop asks for the first one often.
        limit = None if request.page_token else size + 1
        elites = await self._archive.elites(request.run, limit=limit)
        start = _elites_start(elites, request.page_token)
        messages = [self._elites.elite_to_message(e) for e in elites[start : start + size]]
        end = start + _fitting(messages)
        return pb2.ListElitesResponse(
            elites=messages[: end - start],
            next_page_token=_elite_token(elites[end - 1]) if end < len(elites) else "",
        )

    async def ListEvaluations(
        self, request: pb2.ListEvaluationsRequest, context: _Context
    ) -> pb2.ListEvaluationsResponse:
        archived = await self._archive.evaluations(
            request.run,
            after=request.after,
            limit=page_size(request.limit, "limit", most=_PAGE_SIZE),
        )
        response = build(pb2.ListEvaluationsResponse, evaluations=archived)
        del response.evaluations[_fitting(response.evaluations) :]
        return response

    async def ListTransitions(
        self, request: pb2.ListTransitionsRequest, context: _Context
    ) -> pb2.ListTransitionsResponse:
        transitions = await self._archive.transitions(
            request.run,
            after=request.after,
            limit=page_size(request.limit, "limit", most=_TRANSITIONS_PAGE_SIZE),
        )
        return build(pb2.ListTransitionsResponse, transitions=transitions)

    async def GetGradient(
        self, request: pb2.GetGradientRequest, context: _Context
    ) -> pb2.GetGradientResponse:
        return build(pb2.GetGradientResponse, cells=await self._archive.gradient(request.run))

    async def WatchRun(
        self, request: pb2.WatchRunRequest, context: _Context
    ) -> AsyncIterator[pb2.WatchRunResponse]:
        if self._watcher_count >= _MOST_WATCHERS:
            raise TooManyWatchersError(
                f"{self._watcher_count} event streams are open, as many as this archive serves: "
                "close some, or ask for the evaluations so far"
            )
        self._watcher_count += 1
        try:
            async with aclosing(self._watched(request)) as responses:
                async for response in responses:
                    yield response
        finally:
            self._watcher_count -= 1

    async def _watched(
        self, request: pb2.WatchRunRequest
    ) -> AsyncGenerator[pb2.WatchRunResponse, None]:
        # gRPC takes the next event only when the reader has room for it, and closes the events
        # when the reader goes away: one that is slow costs no memory.
        async with aclosing(self._archive.watch(request.run, after=request.after)) as events:
            async for event in until_set(self._draining, events):
                yield build(pb2.WatchRunResponse, event=event)

    async def GetStats(
        self, request: pb2.GetStatsRequest, context: _Context
    ) -> pb2.GetStatsResponse:
        return build(pb2.GetStatsResponse, stats=await self._archive.stats(request.run))


def archive_service(archive: Archive) -> Service:
    """Return `archive` as a service; the server closes it at its end."""
    servicer = ArchiveServicer(archive)
    return Service(
        name=pb2.DESCRIPTOR.services_by_name["ArchiveService"].full_name,
        register=lambda server: pb2_grpc.add_ArchiveServiceServicer_to_server(servicer, server),
        # Opens the store, so that a bad one never reports SERVING.
        prepare=lambda: archive.list_runs(limit=1),
        close=archive.close,
        drain=servicer.drain,
    )


def _fitting(messages: Sequence[Message]) -> int:
    """Return how many of the first of `messages` make a page; one at least, if there is any."""
    left = _PAGE_BYTES
    for count, message in enumerate(messages):
        left -= message.ByteSize()
        if left < 0 and count:
            return count
    return len(messages)


def _elite_token(elite: Elite) -> str:
    return f"{elite.fitness.hex()} {elite.candidate.digest} {elite.island}"


def _elites_start(elites: Sequence[Elite], page_token: str) -> int:
    """Return where the page behind `page_token` starts, though elites have come and gone."""
    if not page_token:
        return 0
    tokens = [_elite_token(elite) for elite in elites]
    if page_token in tokens:
        return tokens.index(page_token) + 1
    try:
        fitness = float.fromhex(page_token.partition(" ")[0])
    except (ValueError, OverflowError) as error:
        raise InvalidArgumentError(
            f"page_token {page_token!r} is unknown", field="page_token"
        ) from error
    return sum(elite.fitness >= fitness for elite in elites)
