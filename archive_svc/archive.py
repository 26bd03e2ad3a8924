"""The archive: implements `kernel_foundry.ports.Archive` over a store.

Keeps each run's numbers in memory and lets the store decide every race: several processes may
select from one run and add to it. Over gRPC: `service.py`.
"""

import asyncio
import contextvars
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from typing import Final, TypeVar

from archive_svc.run.announced import announced
from archive_svc.run.elite_cache import EliteCache
from archive_svc.run.events import PAGE, Bell, Page, follow
from archive_svc.run.open_run import OpenRun
from archive_svc.run.run_limits import check_cost, check_spec, check_strategy
from archive_svc.store.rows import RunRow
from archive_svc.store.schema import LARGEST_INTEGER
from archive_svc.store.store import Store
from kernel_foundry.caller import caller, check_owner
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
from kernel_foundry.domain.run_name import check_run_name, check_run_named, is_run_name
from kernel_foundry.domain.spec_difference import another_spec, spec_difference
from kernel_foundry.domain.steering import Steering, SteeringEvent, steering_fault
from kernel_foundry.domain.verdict_limits import check_verdict
from kernel_foundry.errors import (
    AlreadyExistsError,
    InvalidArgumentError,
    KernelFoundryError,
    RunNotFoundError,
)

T = TypeVar("T")

OPEN_RUNS: Final = 16
"""Runs kept in memory, the ones used last; 100,000 evaluations take some tens of megabytes."""

_READERS: Final = 2
"""Threads that only read, so that long pages do not hold up an addition."""


class LocalArchive:
    """The archive on one store.

    Args:
        url: SQLAlchemy URL of the store.

    Raises:
        StoreUnavailableError, CorruptArchiveError: the store cannot be used; also from methods.
    """

    def __init__(self, url: str) -> None:
        # One thread owns every open run, so no lock is needed; the others see the store alone.
        self._owner = ThreadPoolExecutor(max_workers=1, thread_name_prefix="archive")
        self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="archive-reader")
        self._store = self._owner.submit(Store, url).result()
        self._elites = EliteCache(self._store)
        self._open: OrderedDict[int, OpenRun] = OrderedDict()
        self._ids: dict[str, int] = {}
        """Open runs by id; an id is never given to another run."""
        self._bell = Bell()

    async def create_run(self, spec: RunSpec) -> Run:
        """Create a run of the caller's, or return it when it exists with an equal spec."""
        owner = caller().name
        return await self._call(lambda: self._create_run(spec, owner))

    async def get_run(self, name: str) -> Run:
        """Return a run; "" names the newest."""
        return await self._read(lambda: self._describe(self._row(name)))

    async def list_runs(
        self, *, limit: int = 100, page_token: str = "", mine: bool = False
    ) -> tuple[Run, ...]:
        """Return up to `limit` runs, newest first, behind the one called `page_token`."""
        _check_page(0, limit)
        owner = caller().name if mine else None
        return await self._read(lambda: self._list_runs(limit, page_token, owner))

    async def hold_run(self, name: str, holder: LeaseHolder, budget: RunBudget) -> Run:
        """Acquire or renew the run's lease; the run becomes RUNNING."""
        check_run_named(name, "name")
        run = await self._call(lambda: self._hold_run(name, holder, budget))
        self._bell.ring()
        return run

    async def finish_run(
        self, name: str, state: RunState, *, holder: LeaseHolder | None = None
    ) -> Run:
        """Record where the run stands, and free it."""
        check_run_named(name, "name")
        run = await self._call(lambda: self._finish_run(name, state, holder))
        self._bell.ring()
        return run

    async def delete_run(self, name: str) -> None:
        """Remove a run with all its evaluations, for good."""
        check_run_named(name, "name")
        await self._call(lambda: self._delete_run(name))
        self._bell.ring()

    async def rename_run(self, name: str, new_name: str) -> Run:
        """Give a run another name, under which alone it is found from then on."""
        check_run_named(name, "name")
        check_run_name(new_name, "new_name")
        return await self._call(lambda: self._rename_run(name, new_name))

    async def steer(self, run: str, steering: Steering) -> SteeringEvent:
        """Ask something of a run, durably."""
        check_run_named(run, "run")
        return await self._call(lambda: self._steer(self._own_row(run), steering))

    async def steering(
        self, run: str, *, after: int = 0, limit: int = 100
    ) -> tuple[SteeringEvent, ...]:
        """Return up to `limit` steering events with a sequence above `after`, in order."""
        _check_page(after, limit)
        return await self._read(lambda: self._store.steering(self._row(run).id, after, limit))

    async def select(self, run: str, *, strategy: str = "") -> Selection:
        """Return the selection of the next proposal; two calls differ."""
        if strategy:
            check_strategy(strategy)
        return await self._change(run, lambda opened: opened.select(strategy))

    async def drop_selection(self, run: str, selection: int) -> None:
        """Give a selection back whose proposal came to nothing."""
        await self._change(run, lambda opened: opened.drop(selection))

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
        check_run_named(run, "run")
        if not request_id:
            raise InvalidArgumentError("a request_id is needed", field="request_id")
        check_cost(cost_usd)

        def add_to(opened: OpenRun) -> AddResult:
            check_owner(run, opened.owner)
            check_verdict(candidate, evaluation, opened.task)
            return opened.add(
                candidate,
                evaluation,
                request_id=request_id,
                cost_usd=cost_usd,
                selection=selection,
                name=run,
            )

        def work() -> AddResult:
            opened = self._opened_for(run, candidate, selection)
            if opened is not None:
                try:
                    return add_to(opened)
                except KernelFoundryError:
                    # Another process may have renamed or deleted it: then the refusal says nothing.
                    if self._store.counts(opened.id, run) is not None:
                        raise
            return add_to(self._opened_to_add(run, selection))

        result = await self._call(work)
        self._bell.ring()
        return result

    async def elites(self, run: str, *, limit: int | None = None) -> tuple[Elite, ...]:
        """Return the best elite of each cell over all islands, best first; at most `limit`."""
        return await self._ask(run, lambda opened: tuple(opened.elites(limit)))

    async def evaluations(
        self, run: str, *, after: int = 0, limit: int = 100
    ) -> tuple[ArchivedEvaluation, ...]:
        """Return up to `limit` evaluations with a sequence above `after`, in order."""
        _check_page(after, limit)
        return await self._read(
            lambda: tuple(self._store.evaluations(self._row(run).id, after, limit))
        )

    async def transitions(
        self, run: str, *, after: int = 0, limit: int = 100
    ) -> tuple[Transition, ...]:
        """Return up to `limit` transitions with a sequence above `after`, in order."""
        _check_page(after, limit)
        return await self._read(
            lambda: tuple(self._store.transitions(self._row(run).id, after, limit))
        )

    async def gradient(self, run: str) -> tuple[GradientCell, ...]:
        """Return the gradient field: all cells of the first island, then of the next."""
        return await self._ask(run, lambda opened: tuple(opened.archive.gradient()))

    async def watch(self, run: str, *, after: int = 0) -> AsyncGenerator[RunEvent, None]:
        """Yield all evaluations with a sequence above `after`, then new ones as they come.

        The last event has the run's state, once it is no longer running. Of a slow reader one
        page is held.
        """
        _check_page(after, PAGE)
        name = (await self.get_run(run)).spec.name  # "" names the run that is the newest now

        async def page(after: int) -> Page:
            return await self._read(lambda: self._page(name, after))

        async with aclosing(follow(page, self._bell, after=after)) as events:
            async for event in events:
                yield event

    async def stats(self, run: str) -> ArchiveStats:
        """Return the archive's statistics."""
        return await self._ask(run, lambda opened: opened.archive.stats())

    async def close(self) -> None:
        """Close the store; every evaluation is on disk already."""
        self._readers.shutdown()
        await self._call(self._store.close)
        self._owner.shutdown()

    async def _ask(self, run: str, question: Callable[[OpenRun], T]) -> T:
        return await self._call(lambda: question(self._opened_by_name(run)))

    async def _change(self, run: str, change: Callable[[OpenRun], T]) -> T:
        check_run_named(run, "run")

        def work() -> T:
            opened = self._opened_by_name(run)
            check_owner(run, opened.owner)
            return change(opened)

        return await self._call(work)

    async def _call(self, work: Callable[[], T]) -> T:
        context = contextvars.copy_context()  # which says who calls
        return await asyncio.get_running_loop().run_in_executor(self._owner, context.run, work)

    async def _read(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._readers, work)

    def _create_run(self, spec: RunSpec, owner: str) -> Run:
        check_spec(spec)
        if not self._store.insert_run(spec, owner):
            other = spec_difference(self._row(spec.name).spec, spec)
            if other:
                raise another_spec(spec.name, other)
        return self._describe(self._row(spec.name))

    def _list_runs(self, limit: int, page_token: str, owner: str | None) -> tuple[Run, ...]:
        before = self._store.run_id(page_token) if page_token else LARGEST_INTEGER
        if before is None:
            raise InvalidArgumentError(f"page_token {page_token!r} is unknown", field="page_token")
        return tuple(map(self._describe, self._store.list_runs(limit, before=before, owner=owner)))

    def _hold_run(self, name: str, holder: LeaseHolder, budget: RunBudget) -> Run:
        row = self._own_row(name)
        self._store.hold(row.id, holder, budget)
        return self._describe(self._row(row.spec.name))

    def _delete_run(self, name: str) -> None:
        row = self._own_row(name)
        self._store.delete_run(row.id)
        self._open.pop(row.id, None)
        self._ids.pop(row.spec.name, None)

    def _finish_run(self, name: str, state: RunState, holder: LeaseHolder | None) -> Run:
        row = self._own_row(name)
        self._store.set_state(row.id, state, holder)
        return self._describe(self._row(row.spec.name))

    def _rename_run(self, name: str, new_name: str) -> Run:
        row = self._own_row(name)
        if row.spec.name == new_name:
            raise AlreadyExistsError(f"it is called {new_name} already", run=new_name)
        self._store.rename_run(row.id, new_name)
        self._ids.pop(row.spec.name, None)
        return self._describe(self._row(new_name))

    def _steer(self, row: RunRow, steering: Steering) -> SteeringEvent:
        fault = steering_fault(steering, row.spec.language)
        if fault:
            raise InvalidArgumentError(fault, field="steering")
        return self._store.steer(row.id, steering)

    def _row(self, name: str) -> RunRow:
        row = self._store.find_run(name) if not name or is_run_name(name) else None
        if row is None:
            raise RunNotFoundError(
                f"no run called {name!r}" if name else "there is no run yet",
                run=name,
            )
        return row

    def _own_row(self, name: str) -> RunRow:
        """Return a run that the caller may change: by its id, which no other run ever gets.

        Its name may be another run's a moment later.
        """
        row = self._row(name)
        check_owner(row.spec.name, row.owner)
        return row

    def _opened(self, row: RunRow) -> OpenRun:
        """Return the run with all evaluations so far taken in, also those of other processes."""
        run = self._open.get(row.id)
        if run is None:
            run = self._open[row.id] = OpenRun(self._store, self._elites, row)
            self._ids[row.spec.name] = row.id
        self._open.move_to_end(row.id)
        while len(self._open) > OPEN_RUNS:
            self._open.popitem(last=False)
        run.catch_up(row.evaluation_count, row.steering_count)
        return run

    def _opened_by_name(self, name: str) -> OpenRun:
        run_id = self._ids.get(name, 0)
        opened = self._open.get(run_id)
        counts = self._store.counts(run_id, name) if opened is not None else None
        if opened is None or counts is None:  # not open here, or gone since
            return self._opened(self._row(name))
        self._open.move_to_end(run_id)
        opened.catch_up(*counts)
        return opened

    def _opened_for(self, name: str, candidate: Candidate, selection: int | None) -> OpenRun | None:
        """Return the run that is called so, as far as it is known here, where no more is needed.

        None where another process may have made the selection or added a parent. The store is not
        asked: the addition itself looks at the name.
        """
        opened = self._open.get(self._ids.get(name, 0))
        if (
            opened is None
            or (selection is not None and not opened.archive.is_in_flight(selection))
            or not all(parent in opened.archive for parent in candidate.parents)
        ):
            return None
        self._open.move_to_end(opened.id)
        return opened

    def _opened_to_add(self, name: str, selection: int | None) -> OpenRun:
        """Return the run, whose selection was made, here or in another process."""
        opened = self._opened_by_name(name)
        if selection is not None and not opened.archive.is_in_flight(selection):
            row = self._row(name)
            _check_selection(selection, row.selected_count)
            opened = self._opened(row)
        return opened

    def _describe(self, row: RunRow) -> Run:
        verdict = announced(self._store, row)
        return Run(
            spec=row.spec,
            state=row.state,
            created_unix_s=row.created_unix_s,
            evaluation_count=row.evaluation_count,
            best_speedup=row.best_speedup if verdict is None else verdict.speedup,
            cost_usd=row.cost_usd,
            budget=row.budget,
            owner=row.owner,
            best_speedup_interval=None if verdict is None else verdict.speedup_interval,
        )

    def _page(self, name: str, after: int) -> Page:
        row = self._row(name)
        is_new = row.evaluation_count > after
        archived = self._store.evaluations(row.id, after, PAGE) if is_new else []
        return Page(archived=archived, state=row.state, evaluation_count=row.evaluation_count)


def _check_page(after: int, limit: int) -> None:
    if after < 0:
        raise InvalidArgumentError(f"after is {after}, expected >= 0", field="after")
    check_limit(limit)


def _check_selection(selection: int | None, selected_count: int) -> None:
    if selection is not None and not 0 <= selection < selected_count:
        raise InvalidArgumentError(
            f"selection {selection} was never made in this run", field="selection"
        )
