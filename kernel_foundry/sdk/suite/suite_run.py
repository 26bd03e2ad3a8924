"""Makes the runs of a suite: one at a time on each device, until all have ended or a budget has.

Each run is an optimisation like any other (`sdk/optimization.py`), under a name that follows from
the suite's. So a suite that was killed goes on as its runs do: what is finished in the archive is
taken as it is, what was begun is resumed there, and nothing is judged twice. The queue on disk
(`store/`) holds what the archive does not know: device and budget of each run, and why one was
refused. What a run gets of the suite's budget is computed in `suite_budget.py`.
"""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Iterator
from typing import Final

from kernel_foundry.domain.archive import LEASE_SECONDS, Run, RunBudget, RunState
from kernel_foundry.domain.device_class import (
    device_class,
    is_of_fleet,
    kept_to_class,
    ways_to_ask,
)
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.mechanisms import SHELF
from kernel_foundry.errors import (
    BackendUnavailableError,
    CorruptArchiveError,
    InvalidArgumentError,
    IsolationUnavailableError,
    KernelFoundryError,
    LlmConfigurationError,
    LlmUnavailableError,
    PackageMissingError,
    QuotaExceededError,
    RunHeldError,
    RunNotFoundError,
    TaskBeyondModelsError,
    TaskInvalidError,
    TaskRefusedError,
    first_failure,
)
from kernel_foundry.ports import Evaluator
from kernel_foundry.process_identity import new_holder
from kernel_foundry.sdk.loop.budget import Budget
from kernel_foundry.sdk.loop.progress import AdmissionEvent, Event, RunResult
from kernel_foundry.sdk.optimization import evaluations_of_a_device, optimize, resume
from kernel_foundry.sdk.services import Services
from kernel_foundry.sdk.suite.entry import EntryState, RunProgress, SuiteEntry
from kernel_foundry.sdk.suite.progress import (
    EntryEvent,
    SuiteListener,
    SuiteRunEvent,
    WaitEvent,
)
from kernel_foundry.sdk.suite.starting_points import published_in, starting_points
from kernel_foundry.sdk.suite.store.store import SuiteStore
from kernel_foundry.sdk.suite.suite import Suite
from kernel_foundry.sdk.suite.suite_budget import SuiteBudget

MOST_ATTEMPTS: Final = 3
"""Times that a run may fail while all services answer, before it counts as failed."""

PATIENCE_SECONDS: Final = 600.0
"""How long a service may be away before the suite ends, to go on later."""

_FIRST_PAUSE_S: Final = 1.0
_LONGEST_PAUSE_S: Final = 30.0

_REFUSED: Final = (TaskRefusedError, TaskInvalidError, TaskBeyondModelsError)
_ENDS_THE_SUITE: Final = (
    BackendUnavailableError,
    CorruptArchiveError,
    IsolationUnavailableError,
    LlmConfigurationError,
    LlmUnavailableError,
    PackageMissingError,
    QuotaExceededError,
)
"""What every other run would meet as well."""


async def run_suite(
    services: Services, store: SuiteStore, suite: Suite, listener: SuiteListener
) -> None:
    """Make the runs of `suite` that have not ended; `suite` and `store` say what came of each.

    `Suite.begin_again` before it takes up what was refused or failed.

    Raises:
        RunHeldError: another process works on the suite.
        BackendUnavailableError: the evaluator has none of the devices.
        KernelFoundryError: a service is away for too long, or every run would fail.
    """
    store.hold(suite, new_holder())
    try:
        for entry in suite.entries:
            if entry.state is EntryState.BEGUN:  # also what its caller has taken up again
                store.write(suite, entry)
        await services.generator.check_models(suite.plan.models)
        devices = await devices_of(services.evaluator, suite.plan.devices, suite.plan.language)
        await _SuiteRun(services, store, suite, devices, listener).run()
    finally:
        store.free(suite)


async def devices_of(
    evaluator: Evaluator, named: tuple[str, ...], language: Language
) -> tuple[str, ...]:
    """Return what a run at a time asks for: a device for each one that is named, or of a kind.

    Of a fleet a kind is the class of its first device, and each of the class's devices stands for
    one run at a time on the class: a run goes on when its evaluator leaves the fleet.

    Raises:
        BackendUnavailableError: there is none of a name.
        InvalidArgumentError: one of them runs another language than `language`.
    """
    there = (await evaluator.capabilities()).devices
    found: dict[str, str] = {}
    for name in named:
        matching = [device for device in there if name in ways_to_ask(device)]
        if not matching:
            known = ", ".join(device.id for device in there) or "none"
            raise BackendUnavailableError(
                f"the evaluator has no device {name}, only {known}", device=name
            )
        other = next((device for device in matching if device.language is not language), None)
        if other is not None:
            raise InvalidArgumentError(
                f"device {other.id} runs {other.language.value}, and the suite's kernels are"
                f" {language.value}: make one suite for each language",
                field="devices",
                device=name,
            )
        if is_of_fleet(matching[0].id):
            first = device_class(matching[0])
            alike = [device for device in matching if device_class(device) == first]
            found |= {d.id: kept_to_class(name, d) for d in alike}
        else:
            found |= {device.id: device.id for device in matching}
    return tuple(found.values())


class _SuiteRun:
    def __init__(
        self,
        services: Services,
        store: SuiteStore,
        suite: Suite,
        devices: tuple[str, ...],
        listener: SuiteListener,
    ) -> None:
        self._services = services
        self._store = store
        self._suite = suite
        self._plan = suite.plan
        self._published = published_in(suite.plan.start_from)
        self._devices = devices
        self._budget = SuiteBudget(suite, len(devices))
        self._listener = listener
        self._waiting = deque(e for e in suite.entries if e.state is EntryState.WAITING)
        self._begun = {
            device: deque(
                e
                for e in suite.entries
                if e.state is EntryState.BEGUN and e.progress.device == device
            )
            for device in dict.fromkeys(devices)
        }
        self._used_before_s = suite.used_seconds
        self._started_s = time.monotonic()

    async def run(self) -> None:
        """Work on all devices until nothing is left to do, or no budget."""
        try:
            async with asyncio.TaskGroup() as group:
                for device in self._devices:
                    group.create_task(self._keep_working(device))
        except ExceptionGroup as failures:
            raise first_failure(failures) from failures

    async def _keep_working(self, device: str) -> None:
        while (entry := self._next(device)) is not None:
            self._write(entry, EntryState.BEGUN)
            await self._work(entry)

    def _next(self, device: str) -> SuiteEntry | None:
        """The next run for a device, which has its budget; None: there is none."""
        if self._begun[device]:
            return self._begun[device].popleft()
        if not self._waiting:
            return self._given_more(device)
        budget = self._budget.for_waiting(len(self._waiting), self._used_s())
        if budget is None:
            return None
        entry = self._waiting.popleft()
        entry.progress.device, entry.progress.budget = device, budget
        return entry

    def _given_more(self, device: str) -> SuiteEntry | None:
        """A run of the device that goes on with what others left; None: there is none."""
        found = self._budget.with_more(device, self._used_s())
        if found is None:
            return None
        entry, budget = found
        entry.progress.budget, entry.progress.rounds, entry.progress.attempts = budget, 2, 0
        return entry

    async def _work(self, entry: SuiteEntry) -> None:
        away_since_s: float | None = None
        pause_s = _FIRST_PAUSE_S
        while True:
            started_s = time.monotonic()
            try:
                with _timed(entry.progress):
                    await self._make(entry)
            except _REFUSED as error:
                entry.progress.reason = error.message
                state = EntryState.REFUSED
            except (*_ENDS_THE_SUITE, asyncio.CancelledError):
                self._write(entry, EntryState.BEGUN)
                raise
            except KernelFoundryError as error:
                answering = await self._services_answer()
                away_since_s = None if answering else away_since_s or started_s
                entry.progress.attempts += answering
                entry.progress.reason = error.message
                state = _after_failure(entry, error)
                if isinstance(error, RunHeldError):
                    pause_s = LEASE_SECONDS  # of a process that was killed elsewhere
                if away_since_s and time.monotonic() - away_since_s > PATIENCE_SECONDS:
                    self._write(entry, state)
                    raise
            else:
                entry.progress.reason = ""
                state = EntryState.FINISHED
            if entry.progress.rounds > 1 and state in (EntryState.REFUSED, EntryState.FAILED):
                # It has the result of its first share; what the second one used counts.
                await self._take_finished(entry, await self._services.archive.get_run(entry.run))
                state = EntryState.FINISHED
            self._write(entry, state)
            if state is not EntryState.BEGUN:
                return
            waits = WaitEvent(entry=entry, reason=entry.progress.reason, seconds=pause_s)
            self._listener(waits)
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    async def _make(self, entry: SuiteEntry) -> None:
        """Begin the run, go on with it, or take what it came to."""
        plan, progress = self._plan, entry.progress

        def listen(event: Event) -> None:
            if isinstance(event, AdmissionEvent):
                progress.note(event.admission)
                # A run that is killed at its end is not admitted again.
                self._store.write(self._suite, entry)
            self._listener(SuiteRunEvent(entry=entry, event=event))

        budget = _loop_budget(progress.budget, plan.stop_at)
        try:
            found = await self._services.archive.get_run(entry.run)
        except RunNotFoundError:
            ended = await optimize(
                self._services,
                entry.task,
                language=plan.language,
                device=progress.device,
                models=plan.models,
                budget=budget,
                limits=plan.limits,
                run=entry.run,
                strategy=plan.strategy,
                seed=entry.seed,
                in_flight=plan.in_flight,
                # Runs of a suite are compared: none of them may begin with another's winner.
                without=tuple(dict.fromkeys((*plan.without, SHELF))),
                start_from=starting_points(
                    plan.start_from, entry.task.name, self._store, self._published
                ),
                judging=evaluations_of_a_device(plan.language),
                listener=listen,
            )
            self._take(entry, ended)
            return
        _check_own(entry, found)
        is_given_more = progress.rounds > 1 and found.evaluation_count == progress.archived
        if found.state is RunState.FINISHED and not is_given_more:
            await self._take_finished(entry, found)
            return
        ended = await resume(
            self._services,
            entry.run,
            budget=Budget() if found.budget and not is_given_more else budget,
            limits=plan.limits,
            in_flight=plan.in_flight,
            judging=evaluations_of_a_device(plan.language),
            listener=listen,
        )
        self._take(entry, ended)

    def _take(self, entry: SuiteEntry, ended: RunResult) -> None:
        entry.progress.evaluations = ended.spent.evaluations
        entry.progress.cost_usd = ended.spent.cost_usd
        entry.progress.tokens = ended.spent.tokens
        entry.progress.archived = ended.run.evaluation_count
        entry.progress.ended_by = ended.cause.value
        entry.progress.bound_share = ended.spent.traffic_bound_share

    async def _take_finished(self, entry: SuiteEntry, run: Run) -> None:
        """Take what a run came to whose end was not recorded here: by a failure or a kill."""
        account = await self._services.generator.account(run.spec.name)
        entry.progress.evaluations = run.evaluation_count
        entry.progress.cost_usd = max(run.cost_usd, sum(s.usd for s in account.spend))
        entry.progress.tokens = sum(s.prompt_tokens + s.completion_tokens for s in account.spend)

    async def _services_answer(self) -> bool:
        """Whether all three services are there: then a failure is the run's own."""
        try:
            await self._services.evaluator.capabilities()
            await self._services.generator.list_models()
            await self._services.archive.get_run("")
        except RunNotFoundError:
            return True
        except KernelFoundryError:
            return False
        return True

    def _write(self, entry: SuiteEntry, state: EntryState) -> None:
        entry.state = state
        self._suite.used_seconds = self._used_s()
        self._store.write(self._suite, entry)
        self._listener(EntryEvent(entry=entry))

    def _used_s(self) -> float:
        return self._used_before_s + time.monotonic() - self._started_s


def _after_failure(entry: SuiteEntry, error: KernelFoundryError) -> EntryState:
    """Where a run stands that failed for no fault of a candidate: it is tried again, or not."""
    may_pass = error.may_pass or isinstance(error, RunHeldError)
    is_over = not may_pass or entry.progress.attempts >= MOST_ATTEMPTS
    return EntryState.FAILED if is_over else EntryState.BEGUN


@contextlib.contextmanager
def _timed(progress: RunProgress) -> Iterator[None]:
    """Add the time that is spent here, however it ends."""
    started_s = time.monotonic()
    try:
        yield
    finally:
        progress.seconds += time.monotonic() - started_s


def _loop_budget(given: RunBudget, stop_at: float | None) -> Budget:
    return Budget(
        evaluations=given.evaluations,
        minutes=given.minutes,
        cost_usd=given.cost_usd,
        tokens=given.tokens,
        requests_per_minute=given.requests_per_minute,
        stop_at=stop_at,
    )


def _check_own(entry: SuiteEntry, found: Run) -> None:
    """Refuse a run that was not made by this suite.

    Raises:
        InvalidArgumentError: its task or its seed is another.
    """
    spec = found.spec
    if spec.task.digest != entry.task.digest or spec.seed != entry.seed:
        raise InvalidArgumentError(
            f"run {entry.run} has another task or seed: begin the suite under another name",
            field="suite",
            run=entry.run,
        )
