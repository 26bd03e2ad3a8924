"""The archive: implements `kernel_foundry.ports.Archive` over a store.

Keeps each run's grid in memory and lets the store decide every race: several processes may
tell into one run. Knows nothing of grpc.
"""

import asyncio
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np

from archive_svc.run_archive import RunArchive
from archive_svc.selection import STRATEGIES, SelectionPlan, plan_selection
from archive_svc.store.rows import RunRow, Telling
from archive_svc.store.store import Store
from kernel_foundry.domain.archive import (
    AddResult,
    AddStatus,
    ArchiveStats,
    Elite,
    Run,
    RunSpec,
    RunState,
    Selection,
    ToldEvaluation,
)
from kernel_foundry.domain.candidate import Candidate, Operator
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.domain.measures import Measures
from kernel_foundry.errors import (
    AlreadyExistsError,
    InvalidArgumentError,
    RunNotFoundError,
)

T = TypeVar("T")

_NAME = re.compile(r"[A-Za-z0-9._-]{1,200}")


class Archive:
    """The archive on one store.

    Args:
        url: SQLAlchemy URL of the store.

    Raises:
        StoreUnavailableError, CorruptArchiveError: the store cannot be used; also from methods.
    """

    def __init__(self, url: str) -> None:
        # One thread owns every statement and every grid, so no lock is needed.
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="archive")
        self._store = self._thread.submit(Store, url).result()
        self._runs: dict[int, RunArchive] = {}

    async def create_run(self, spec: RunSpec) -> Run:
        """Create a run, or return it when it exists with an equal spec."""
        return await self._call(lambda: self._create_run(spec))

    async def get_run(self, name: str) -> Run:
        """Return a run; "" names the newest."""
        return await self._call(lambda: self._describe(self._row(name)))

    async def list_runs(self) -> tuple[Run, ...]:
        """Return all runs, newest first."""
        return await self._call(
            lambda: tuple(self._describe(row) for row in self._store.list_runs())
        )

    async def finish_run(self, name: str, state: RunState) -> Run:
        """Record where the run stands."""
        return await self._call(lambda: self._finish_run(name, state))

    async def select(self, run: str) -> Selection:
        """Return the assignment of the next proposal; two calls differ."""
        return await self._call(lambda: self._select(run))

    async def tell(
        self,
        run: str,
        candidate: Candidate,
        evaluation: Evaluation,
        *,
        request_id: str,
        cost_usd: float = 0.0,
        selection: int | None = None,  # noqa: ARG002 - kept from schema 0002 on
    ) -> AddResult:
        """Record a verdict durably, then answer. The same request_id tells once."""
        if not request_id:
            raise InvalidArgumentError("tell needs a request_id", field="request_id")
        if not cost_usd >= 0:
            raise InvalidArgumentError(f"cost_usd is {cost_usd}, expected >= 0", field="cost_usd")
        if not 0 <= evaluation.fitness <= 1:
            raise InvalidArgumentError(
                f"fitness is {evaluation.fitness}, expected 0 to 1", field="evaluation.fitness"
            )
        return await self._call(
            lambda: self._tell(run, candidate, evaluation, request_id, cost_usd)
        )

    async def elites(self, run: str, *, limit: int | None = None) -> tuple[Elite, ...]:
        """Return the elites, best first; at most `limit`."""
        return await self._call(lambda: self._elites(run, limit))

    async def evaluations(
        self, run: str, *, after: int = 0, limit: int = 100
    ) -> tuple[ToldEvaluation, ...]:
        """Return up to `limit` told evaluations with a sequence above `after`, in order."""
        if limit < 1 or after < 0:
            raise InvalidArgumentError("expected after >= 0 and limit >= 1", field="limit")
        return await self._call(lambda: tuple(self._store.told(self._row(run).id, after, limit)))

    async def stats(self, run: str) -> ArchiveStats:
        """Return the archive's statistics."""
        return await self._call(lambda: self._loaded(self._row(run)).stats())

    async def close(self) -> None:
        """Close the store; everything told is on disk already."""
        await self._call(self._store.close)
        self._thread.shutdown()

    async def _call(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _create_run(self, spec: RunSpec) -> Run:
        if not _NAME.fullmatch(spec.name):
            raise InvalidArgumentError(
                f"run name {spec.name!r}: expected 1 to 200 of A-Z a-z 0-9 . _ -", field="name"
            )
        if spec.strategy not in STRATEGIES:
            raise InvalidArgumentError(
                f"strategy {spec.strategy!r}: expected one of {', '.join(STRATEGIES)}",
                field="strategy",
            )
        if not self._store.insert_run(spec) and self._row(spec.name).spec != spec:
            raise AlreadyExistsError(
                f"run {spec.name} exists with another task, device, model or seed: choose "
                "another name, or resume it with what it was started with",
                run=spec.name,
            )
        return self._describe(self._row(spec.name))

    def _finish_run(self, name: str, state: RunState) -> Run:
        row = self._row(name)
        self._store.set_state(row.id, state)
        return self._describe(self._row(row.spec.name))

    def _select(self, run: str) -> Selection:
        row = self._row(run)
        archive = self._loaded(row)
        sequence = archive.selected_count
        archive.selected_count += 1
        plan = plan_selection(
            strategy=archive.strategy,
            grid=archive.grid,
            repairable=archive.repairable(),
            sequence=sequence,
            rng=np.random.default_rng([archive.seed, sequence]),
        )
        if plan.operator is Operator.REPAIR and plan.parent is not None:
            archive.assign_repair(plan.parent)
        return self._fill_in(row.id, archive, plan, sequence)

    def _fill_in(
        self, run_id: int, archive: RunArchive, plan: SelectionPlan, sequence: int
    ) -> Selection:
        digests = [d for d in (plan.parent, *plan.inspirations) if d is not None]
        told = self._store.told_at(run_id, [archive.sequence_of(d) for d in digests])
        elites = {d: _elite(told[archive.sequence_of(d)]) for d in digests}
        target = plan.target
        return Selection(
            operator=plan.operator,
            parent=elites[plan.parent] if plan.parent else None,
            inspirations=tuple(elites[d] for d in plan.inspirations),
            target=Measures(memory=target[0], algorithm=target[1], synchronization=target[2])
            if target
            else None,
            sequence=sequence,
        )

    def _tell(
        self,
        run: str,
        candidate: Candidate,
        evaluation: Evaluation,
        request_id: str,
        cost_usd: float,
    ) -> AddResult:
        row = self._row(run)
        archive = self._loaded(row)
        told = self._store.tell(
            row.id,
            Telling(
                request_id=request_id,
                candidate=candidate,
                evaluation=evaluation,
                cost_usd=cost_usd,
            ),
        )
        cell = told.numbers.cell if told.numbers.passed else None
        if told.is_repeat:
            return AddResult(status=AddStatus.NOT_ADDED, improvement=0.0, cell=cell, is_best=False)
        # Other processes may have told in between.
        for numbers in self._store.told_numbers(row.id, archive.told_count):
            status, improvement = archive.take(numbers)
            if numbers.sequence == told.numbers.sequence:
                break
        best = archive.grid.best
        return AddResult(
            status=status,
            improvement=improvement,
            cell=cell,
            is_best=best is not None and best.sequence == told.numbers.sequence,
        )

    def _elites(self, run: str, limit: int | None) -> tuple[Elite, ...]:
        row = self._row(run)
        entries = self._loaded(row).grid.elites()[:limit]
        told = self._store.told_at(row.id, [e.sequence for e in entries])
        return tuple(_elite(told[e.sequence]) for e in entries)

    def _row(self, name: str) -> RunRow:
        row = self._store.find_run(name)
        if row is None:
            raise RunNotFoundError(
                f"no run called {name!r}: `kfoundry runs list` shows them"
                if name
                else "there is no run yet: `kfoundry optimize TASK` makes one",
                run=name,
            )
        return row

    def _loaded(self, row: RunRow) -> RunArchive:
        """Return the run's archive with everything told so far, also by other processes."""
        archive = self._runs.get(row.id)
        if archive is None:
            archive = RunArchive(strategy=row.spec.strategy, seed=row.spec.seed)
            self._runs[row.id] = archive
        if row.told_count > archive.told_count:
            for told in self._store.told_numbers(row.id, archive.told_count):
                archive.take(told)
        return archive

    def _describe(self, row: RunRow) -> Run:
        return Run(
            spec=row.spec,
            state=row.state,
            created_unix_s=row.created_unix_s,
            told_count=row.told_count,
            best_speedup=row.best_speedup,
            cost_usd=row.cost_usd,
        )


def _elite(told: ToldEvaluation) -> Elite:
    evaluation = told.evaluation
    return Elite(
        candidate=told.candidate,
        evaluation=evaluation,
        fitness=evaluation.fitness,
        # A failed parent of a repair may have no measures; it then stands at the origin.
        measures=evaluation.measures or Measures(memory=0, algorithm=0, synchronization=0),
    )
