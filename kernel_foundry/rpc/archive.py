"""`Archive` over gRPC: the same port, another process."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, TypeVar

from kernel_foundry.archive.v1 import archive_service_pb2 as pb2
from kernel_foundry.archive.v1.archive_service_pb2_grpc import ArchiveServiceStub
from kernel_foundry.domain.archive import (
    AddResult,
    ArchivedEvaluation,
    ArchiveStats,
    Elite,
    LeaseHolder,
    Run,
    RunBudget,
    RunEvent,
    RunSpec,
    RunState,
    Selection,
)
from kernel_foundry.domain.bounds import check_limit
from kernel_foundry.domain.candidate import Candidate
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.domain.gradient import GradientCell, Transition
from kernel_foundry.domain.run_name import check_run_name
from kernel_foundry.domain.steering import Steering, SteeringEvent
from kernel_foundry.rpc.connection import DEFAULT_OPTIONS, CallOptions, Connection
from kernel_foundry.rpc.field_paths import fields_of
from kernel_foundry.wire.elites import EliteMessages
from kernel_foundry.wire.message import build, read_field

Item = TypeVar("Item", ArchivedEvaluation, SteeringEvent, Transition)


class RemoteArchive:
    """The archive at an address; implements `kernel_foundry.ports.Archive`.

    Every method may also raise `ServiceUnavailableError`, which names the target, and
    `DeadlineExceededError`. Made and used in one event loop.

    Args:
        target: `unix:/path` or `host:port`.
        options: Deadlines and retries.
    """

    def __init__(self, target: str, options: CallOptions = DEFAULT_OPTIONS) -> None:
        self._connection = Connection(target, options)
        self._stub = ArchiveServiceStub(self._connection.channel)
        self._elites = EliteMessages()

    async def create_run(self, spec: RunSpec) -> Run:
        """Create a run, or return it when it exists with an equal spec."""
        with fields_of("spec"):
            request = build(pb2.CreateRunRequest, spec=spec)
            return _checked(await self._connection.ask(Run, "run", self._stub.CreateRun, request))

    async def get_run(self, name: str) -> Run:
        """Return a run; "" names the newest."""
        request = build(pb2.GetRunRequest, name=name)
        return _checked(await self._connection.ask(Run, "run", self._stub.GetRun, request))

    async def list_runs(
        self, *, limit: int = 100, page_token: str = "", mine: bool = False
    ) -> tuple[Run, ...]:
        """Return up to `limit` runs, newest first, behind the one called `page_token`."""
        check_limit(limit)
        runs: list[Run] = []
        while True:
            page_size = limit - len(runs)
            request = pb2.ListRunsRequest(page_size=page_size, page_token=page_token, mine=mine)
            response = await self._connection.quick(self._stub.ListRuns, request)
            page = read_field(tuple[Run, ...], response, "runs")
            runs += (_checked(run, f"runs[{index}]") for index, run in enumerate(page))
            page_token = response.next_page_token
            if not page_token or len(runs) >= limit:
                return tuple(runs)

    async def hold_run(self, name: str, holder: LeaseHolder, budget: RunBudget) -> Run:
        """Make the run one loop's own for a while, from now on: it is running then."""
        request = build(pb2.HoldRunRequest, name=name, holder=holder, budget=budget)
        return _checked(await self._connection.ask(Run, "run", self._stub.HoldRun, request))

    async def finish_run(
        self, name: str, state: RunState, *, holder: LeaseHolder | None = None
    ) -> Run:
        """Record where the run stands, and free it."""
        request = build(pb2.FinishRunRequest, name=name, state=state, holder=holder)
        return _checked(await self._connection.ask(Run, "run", self._stub.FinishRun, request))

    async def delete_run(self, name: str) -> None:
        """Remove a run with all its evaluations, for good."""
        await self._connection.quick(self._stub.DeleteRun, pb2.DeleteRunRequest(name=name))

    async def rename_run(self, name: str, new_name: str) -> Run:
        """Give a run another name; a repeat after a lost answer says that the old one is gone."""
        request = build(pb2.RenameRunRequest, name=name, new_name=new_name)
        return _checked(await self._connection.ask(Run, "run", self._stub.RenameRun, request))

    async def steer(self, run: str, steering: Steering) -> SteeringEvent:
        """Ask something of a run, durably."""
        request = build(pb2.SteerRunRequest, run=run, steering=steering)
        return await self._connection.ask(SteeringEvent, "event", self._stub.SteerRun, request)

    async def steering(
        self, run: str, *, after: int = 0, limit: int = 100
    ) -> tuple[SteeringEvent, ...]:
        """Return up to `limit` steering events with a sequence above `after`, in order."""
        request = build(pb2.ListSteeringRequest, run=run, after=after, limit=limit)
        return await self._read_on(
            tuple[SteeringEvent, ...], "events", self._stub.ListSteering, request
        )

    async def select(self, run: str, *, strategy: str = "") -> Selection:
        """Return the assignment of the next proposal; two calls differ."""
        request = build(pb2.SelectParentsRequest, run=run, strategy=strategy)
        response = await self._connection.quick(self._stub.SelectParents, request)
        return self._elites.selection_from_message(response.selection, "selection")

    async def drop_selection(self, run: str, selection: int) -> None:
        """Give an assignment back whose proposal came to nothing."""
        request = build(pb2.DropSelectionRequest, run=run, selection=selection)
        await self._connection.quick(self._stub.DropSelection, request)

    async def add(
        self,
        run: str,
        candidate: Candidate,
        evaluation: Evaluation,
        *,
        request_id: str,
        cost_usd: float = 0.0,
        selection: int | None = None,
    ) -> AddResult:
        """Add a verdict durably, then answer. The same request_id adds once."""
        request = build(
            pb2.AddEvaluationRequest,
            run=run,
            candidate=candidate,
            evaluation=evaluation,
            request_id=request_id,
            cost_usd=cost_usd,
            selection=selection,
        )
        return await self._connection.ask(AddResult, "result", self._stub.AddEvaluation, request)

    async def elites(self, run: str, *, limit: int | None = None) -> tuple[Elite, ...]:
        """Return the best elite of each cell over all islands, best first; at most `limit`."""
        elites: list[Elite] = []
        page_token = ""
        while limit is None or len(elites) < limit:
            page_size = 0 if limit is None else limit - len(elites)
            request = build(
                pb2.ListElitesRequest, run=run, page_size=page_size, page_token=page_token
            )
            response = await self._connection.quick(self._stub.ListElites, request)
            elites += [
                self._elites.elite_from_message(message, f"elites[{index}]")
                for index, message in enumerate(response.elites)
            ]
            page_token = response.next_page_token
            if not page_token:
                break
        return tuple(elites)

    async def evaluations(
        self, run: str, *, after: int = 0, limit: int = 100
    ) -> tuple[ArchivedEvaluation, ...]:
        """Return up to `limit` evaluations with a sequence above `after`, in order."""
        request = build(pb2.ListEvaluationsRequest, run=run, after=after, limit=limit)
        return await self._read_on(
            tuple[ArchivedEvaluation, ...], "evaluations", self._stub.ListEvaluations, request
        )

    async def transitions(
        self, run: str, *, after: int = 0, limit: int = 100
    ) -> tuple[Transition, ...]:
        """Return up to `limit` transitions with a sequence above `after`, in order."""
        request = build(pb2.ListTransitionsRequest, run=run, after=after, limit=limit)
        return await self._read_on(
            tuple[Transition, ...], "transitions", self._stub.ListTransitions, request
        )

    async def gradient(self, run: str) -> tuple[GradientCell, ...]:
        """Return the gradient field: all cells of the first island, then of the next."""
        request = build(pb2.GetGradientRequest, run=run)
        return await self._connection.ask(
            tuple[GradientCell, ...], "cells", self._stub.GetGradient, request
        )

    async def watch(self, run: str, *, after: int = 0) -> AsyncGenerator[RunEvent, None]:
        """Yield all evaluations with a sequence above `after`, then new ones as they come.

        A connection that breaks raises: go on after the last sequence that came.
        """
        request = build(pb2.WatchRunRequest, run=run, after=after)
        responses = self._connection.stream(self._stub.WatchRun, request, timeout_s=None)
        async with aclosing(responses):
            async for response in responses:
                yield read_field(RunEvent, response, "event")

    async def stats(self, run: str) -> ArchiveStats:
        """Return the archive's statistics."""
        request = build(pb2.GetStatsRequest, run=run)
        return await self._connection.ask(ArchiveStats, "stats", self._stub.GetStats, request)

    async def _read_on(
        self, kind: type[tuple[Item, ...]], field: str, method: Any, request: Any
    ) -> tuple[Item, ...]:
        """Up to `request.limit` items behind `request.after`, page by page until one is empty."""
        limit: int = request.limit
        check_limit(limit)
        items: list[Item] = []
        while True:
            page = await self._connection.ask(kind, field, method, request)
            items += page
            if not page or len(items) >= limit:
                return tuple(items)
            request.after, request.limit = page[-1].sequence, limit - len(items)

    async def close(self) -> None:
        """Close the connection; the service goes on."""
        await self._connection.close()


def _checked(run: Run, field: str = "run") -> Run:
    """Return `run`; refuse a name that no run may have: paths on this machine are made of it."""
    check_run_name(run.spec.name, f"{field}.spec.name")
    return run
