"""An archive in memory: one island for each run, nothing durable, the best elite as parent.

Records transitions as the real one does, but learns no gradient from them.
"""

import asyncio
import dataclasses
import itertools
import math
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass, field

from kernel_foundry.caller import caller
from kernel_foundry.domain.archive import (
    STRATEGY_NAMES,
    AddResult,
    AddStatus,
    ArchivedEvaluation,
    ArchiveStats,
    Elite,
    IslandStats,
    LeaseHolder,
    OutcomeCount,
    Run,
    RunBudget,
    RunEvent,
    RunSpec,
    RunState,
    Selection,
)
from kernel_foundry.domain.best import best_of
from kernel_foundry.domain.candidate import Candidate, Operator
from kernel_foundry.domain.evaluation import Evaluation, EvaluationOutcome
from kernel_foundry.domain.gradient import GradientCell, Transition
from kernel_foundry.domain.measures import DIMENSIONS, LEVELS, Cell, Measures
from kernel_foundry.domain.run_name import check_run_name
from kernel_foundry.domain.spec_difference import another_spec, spec_difference
from kernel_foundry.domain.steering import (
    MOST_STEERING,
    Steering,
    SteeringAction,
    SteeringEvent,
    SteeringState,
    steering_fault,
)
from kernel_foundry.errors import (
    AlreadyExistsError,
    InvalidArgumentError,
    RunHeldError,
    RunNotFoundError,
)
from kernel_foundry.plan.used_trick import used_trick

_ISLAND = "all"


@dataclass(slots=True, kw_only=True)
class _FakeRun:
    spec: RunSpec
    number: int
    """Position among the archive's runs; also its time of creation."""
    owner: str
    state: RunState = RunState.RUNNING
    holder: LeaseHolder | None = None
    budget: RunBudget | None = None
    archived: list[ArchivedEvaluation] = field(default_factory=list)
    requests: dict[str, str] = field(default_factory=dict)
    """Candidate digest by request_id."""
    newest: dict[str, Evaluation] = field(default_factory=dict)
    """The newest evaluation of each candidate, by digest."""
    transitions: list[Transition] = field(default_factory=list)
    elites: dict[Measures, Elite] = field(default_factory=dict)
    selected_count: int = 0
    steering: list[SteeringEvent] = field(default_factory=list)
    change: asyncio.Event = field(default_factory=asyncio.Event)
    """Set, and replaced, when something is added or the state changes."""


class FakeArchive:
    """Implements `kernel_foundry.ports.Archive`."""

    def __init__(self) -> None:
        self._runs: dict[str, _FakeRun] = {}

    async def create_run(self, spec: RunSpec) -> Run:
        """Create a run, or return it when it exists with an equal spec."""
        made = _FakeRun(spec=spec, number=len(self._runs), owner=caller().name)
        run = self._runs.setdefault(spec.name, made)
        if run.spec != spec:
            raise another_spec(spec.name, spec_difference(run.spec, spec))
        return _describe(run)

    async def get_run(self, name: str) -> Run:
        """Return a run; "" names the newest."""
        return _describe(self._run(name))

    async def list_runs(
        self, *, limit: int = 100, page_token: str = "", mine: bool = False
    ) -> tuple[Run, ...]:
        """Return up to `limit` runs, newest first, behind the one called `page_token`."""
        if limit < 1:
            raise InvalidArgumentError(f"limit is {limit}, expected >= 1", field="limit")
        who = caller().name
        names = [name for name in reversed(self._runs) if not mine or self._runs[name].owner == who]
        if page_token and page_token not in names:
            raise InvalidArgumentError(f"page_token {page_token!r} is unknown", field="page_token")
        start = names.index(page_token) + 1 if page_token else 0
        return tuple(_describe(self._runs[name]) for name in names[start : start + limit])

    async def hold_run(self, name: str, holder: LeaseHolder, budget: RunBudget) -> Run:
        """Make the run one loop's own until it is finished."""
        run = self._run(name)
        if run.holder not in (None, holder):
            raise RunHeldError(f"run {name} is another loop's", run=name)
        run.holder, run.budget, run.state = holder, budget, RunState.RUNNING
        _announce(run)
        return _describe(run)

    async def finish_run(
        self, name: str, state: RunState, *, holder: LeaseHolder | None = None
    ) -> Run:
        """Record where the run stands, and free it."""
        run = self._run(name)
        if holder is None or run.holder in (None, holder):
            run.holder, run.state = None, state
        _announce(run)
        return _describe(run)

    async def delete_run(self, name: str) -> None:
        """Remove a run."""
        run = self._run(name)
        if run.holder is not None:
            raise RunHeldError(f"a loop works on run {name}", run=name)
        del self._runs[run.spec.name]

    async def rename_run(self, name: str, new_name: str) -> Run:
        """Give a run another name."""
        check_run_name(new_name)
        run = self._run(name)
        if new_name in self._runs:
            raise AlreadyExistsError(f"there is a run {new_name}", run=new_name)
        if run.holder is not None:
            raise RunHeldError(f"a loop works on run {name}", run=name)
        self._runs = {new_name if other is run else key: other for key, other in self._runs.items()}
        run.spec = dataclasses.replace(run.spec, name=new_name)
        return _describe(run)

    async def steer(self, run: str, steering: Steering) -> SteeringEvent:
        """Ask something of a run."""
        state = self._run(run)
        steered = SteeringState(state.steering)
        fault = steering_fault(steering, state.spec.language) or steered.fault(steering)
        if fault:
            raise InvalidArgumentError(fault, field="steering")
        if not state.steering or state.steering[-1].steering != steering:
            is_stop = steering.action is SteeringAction.STOP
            if len(state.steering) >= MOST_STEERING - (not is_stop):
                raise InvalidArgumentError("steered too often", field="steering")
            state.steering.append(
                SteeringEvent(
                    sequence=len(state.steering) + 1,
                    steering=steering,
                    steered_unix_s=float(len(state.steering)),
                    evaluation_count=len(state.archived),
                )
            )
        return state.steering[-1]

    async def steering(
        self, run: str, *, after: int = 0, limit: int = 100
    ) -> tuple[SteeringEvent, ...]:
        """Return up to `limit` steering events with a sequence above `after`, in order."""
        _check_page(after, limit)
        return tuple(self._run(run).steering[after : after + limit])

    async def select(self, run: str, *, strategy: str = "") -> Selection:
        """Seed an empty archive, else mutate the best elite, whatever the strategy.

        Where a cell is pinned, its elite is mutated, or others towards it.
        """
        if strategy and strategy not in STRATEGY_NAMES:
            raise InvalidArgumentError(f"no strategy {strategy!r}", field="strategy")
        state = self._run(run)
        sequence = state.selected_count
        state.selected_count += 1
        steered = SteeringState(state.steering)
        allowed = [
            elite
            for elite in _ranked(state)
            if elite.measures not in steered.banned
            and not used_trick(steered.tricks, elite.candidate.source)
        ]
        pinned = [elite for elite in allowed if elite.measures == steered.pinned]
        parent = next(iter(pinned or allowed), None)
        return Selection(
            operator=Operator.SEED if parent is None else Operator.MUTATE,
            parent=parent,
            target=None if pinned else steered.pinned,
            sequence=sequence,
            island=_ISLAND,
            user_hint=steered.hint,
            banned_tricks=steered.tricks,
        )

    async def drop_selection(self, run: str, selection: int) -> None:
        """Give an assignment back; every mutation asks for the same here."""
        self._run(run)

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
        """Add a verdict. The same request_id adds once."""
        state = self._run(run)
        _check(state, candidate, evaluation, request_id)
        if selection is not None and not 0 <= selection < state.selected_count:
            raise InvalidArgumentError("that selection was never made", field="selection")
        cell = _cell(evaluation) if evaluation.passed else None
        if request_id in state.requests:
            if state.requests[request_id] != candidate.digest:
                raise AlreadyExistsError(
                    f"request {request_id} added another candidate", request_id=request_id
                )
            return AddResult(status=AddStatus.NOT_ADDED, improvement=0.0, cell=cell, is_best=False)
        state.requests[request_id] = candidate.digest
        state.archived.append(
            ArchivedEvaluation(
                sequence=len(state.archived) + 1,
                candidate=candidate,
                evaluation=evaluation,
                archived_unix_s=float(len(state.archived)),
                cost_usd=cost_usd,
                island=_ISLAND,
                selection=selection,
            )
        )
        _record_transition(state, candidate, evaluation)
        status, improvement = _add(state)
        _announce(state)
        is_best = evaluation.passed and _ranked(state)[0].candidate == candidate
        return AddResult(status=status, improvement=improvement, cell=cell, is_best=is_best)

    async def elites(self, run: str, *, limit: int | None = None) -> tuple[Elite, ...]:
        """Return the elites, best first; at most `limit`."""
        return tuple(_ranked(self._run(run))[:limit])

    async def evaluations(
        self, run: str, *, after: int = 0, limit: int = 100
    ) -> tuple[ArchivedEvaluation, ...]:
        """Return up to `limit` evaluations with a sequence above `after`, in order."""
        _check_page(after, limit)
        return tuple(self._run(run).archived[after : after + limit])

    async def transitions(
        self, run: str, *, after: int = 0, limit: int = 100
    ) -> tuple[Transition, ...]:
        """Return up to `limit` transitions with a sequence above `after`, in order."""
        _check_page(after, limit)
        later = (t for t in self._run(run).transitions if t.sequence > after)
        return tuple(itertools.islice(later, limit))

    async def gradient(self, run: str) -> tuple[GradientCell, ...]:
        """Return a field that points nowhere, with the elites in it."""
        elites = {e.measures.cell: e.candidate.digest for e in self._run(run).elites.values()}
        nowhere = (0.0, 0.0, 0.0)
        return tuple(
            GradientCell(
                cell=cell,
                island=_ISLAND,
                gradient=nowhere,
                fitness=nowhere,
                rate=nowhere,
                exploration=nowhere,
                confidence=0.0,
                elite=elites.get(cell, ""),
            )
            for cell in _cells()
        )

    async def watch(self, run: str, *, after: int = 0) -> AsyncGenerator[RunEvent, None]:
        """Yield all evaluations after `after`, then new ones as they come, then the state."""
        _check_page(after, 1)
        state = self._run(run)
        while True:
            change = state.change
            for archived in state.archived[after:]:
                after = archived.sequence
                yield RunEvent(sequence=after, archived=archived)
            if len(state.archived) <= after and state.state is not RunState.RUNNING:
                yield RunEvent(sequence=len(state.archived), state=state.state)
                return
            await change.wait()

    async def stats(self, run: str) -> ArchiveStats:
        """Return the archive's statistics."""
        state = self._run(run)
        scores = [elite.fitness for elite in state.elites.values()]
        outcomes = [archived.evaluation.outcome for archived in state.archived]
        return ArchiveStats(
            evaluation_count=len(state.archived),
            candidate_count=len({t.candidate.digest for t in state.archived}),
            elite_count=len(scores),
            coverage=len(scores) / LEVELS ** len(DIMENSIONS),
            qd_score=sum(scores),
            objective_max=max(scores, default=None),
            objective_mean=sum(scores) / len(scores) if scores else None,
            outcomes=tuple(
                OutcomeCount(outcome=outcome.value, count=outcomes.count(outcome))
                for outcome in EvaluationOutcome
                if outcome in outcomes
            ),
            islands=(
                IslandStats(
                    name=_ISLAND,
                    elite_count=len(scores),
                    qd_score=sum(scores),
                    objective_max=max(scores, default=None),
                    migrations=0,
                ),
            ),
        )

    async def close(self) -> None:
        """Do nothing: nothing is held."""

    def _run(self, name: str) -> _FakeRun:
        if not name and self._runs:
            name = next(reversed(self._runs))
        if name not in self._runs:
            raise RunNotFoundError(f"no run called {name!r}", run=name)
        return self._runs[name]


def _announce(run: _FakeRun) -> None:
    run.change.set()
    run.change = asyncio.Event()


def _cells() -> Iterator[Cell]:
    levels = range(LEVELS)
    return itertools.product(levels, levels, levels)


def _cell(evaluation: Evaluation) -> Cell | None:
    return evaluation.measures.cell if evaluation.measures else None


def _check_page(after: int, limit: int) -> None:
    if after < 0 or limit < 1:
        raise InvalidArgumentError("expected after >= 0 and limit >= 1", field="limit")


def _check(run: _FakeRun, candidate: Candidate, evaluation: Evaluation, request_id: str) -> None:
    if not request_id:
        raise InvalidArgumentError("an evaluation is added with a request_id", field="request_id")
    if not 0 <= evaluation.fitness < math.inf:
        raise InvalidArgumentError("expected a fitness from 0", field="evaluation.fitness")
    if evaluation.passed and evaluation.candidate != candidate.digest:
        raise InvalidArgumentError(
            "the verdict is on another candidate", field="evaluation.candidate"
        )
    if any(parent not in run.newest for parent in candidate.parents):
        raise InvalidArgumentError("a parent is not in this run", field="candidate.parents")


def _record_transition(run: _FakeRun, candidate: Candidate, evaluation: Evaluation) -> None:
    is_first = candidate.digest not in run.newest
    run.newest[candidate.digest] = evaluation
    if not is_first or not candidate.parents:
        return
    parent = run.newest[candidate.parents[0]]
    run.transitions.append(
        Transition(
            sequence=len(run.archived),
            island=_ISLAND,
            parent=candidate.parents[0],
            child=candidate.digest,
            parent_cell=_cell(parent),
            child_cell=_cell(evaluation),
            gain=evaluation.fitness - parent.fitness,
            outcome=evaluation.outcome.value,
        )
    )


def _ranked(run: _FakeRun) -> list[Elite]:
    best = best_of(run.archived)
    first = best.candidate.digest if best else ""
    return sorted(
        run.elites.values(), key=lambda elite: (elite.candidate.digest != first, -elite.fitness)
    )


def _add(run: _FakeRun) -> tuple[AddStatus, float]:
    """Choose every elite anew; return what became of the last evaluation."""
    last, before = run.archived[-1], run.elites
    cells = {t.evaluation.measures for t in run.archived if t.evaluation.measures is not None}
    newest = {t.candidate.digest: t for t in run.archived}.values()
    run.elites = {}
    for measures in cells:
        best = best_of(t for t in newest if t.evaluation.measures == measures)
        if best is not None:
            run.elites[measures] = Elite(
                candidate=best.candidate,
                evaluation=best.evaluation,
                fitness=best.evaluation.fitness,
                measures=measures,
                island=_ISLAND,
            )
    mine = last.evaluation.measures
    if mine is None or mine not in run.elites or run.elites[mine].evaluation != last.evaluation:
        return AddStatus.NOT_ADDED, 0.0
    if mine not in before:
        return AddStatus.NEW, last.evaluation.fitness
    gain = last.evaluation.fitness - before[mine].fitness
    return AddStatus.IMPROVE_EXISTING, max(gain, 0.0)


def _describe(run: _FakeRun) -> Run:
    ranked = _ranked(run)
    return Run(
        spec=run.spec,
        state=run.state,
        created_unix_s=float(run.number),
        evaluation_count=len(run.archived),
        best_speedup=ranked[0].evaluation.speedup if ranked else None,
        best_speedup_interval=ranked[0].evaluation.speedup_interval if ranked else None,
        cost_usd=sum(archived.cost_usd for archived in run.archived),
        budget=run.budget,
        owner=run.owner,
    )
