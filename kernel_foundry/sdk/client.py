"""The Python SDK: `connect()` gives a `Foundry` whose calls are plain and synchronous.

Synchronous calls of the asynchronous ports. Services are opened at their first use and kept until
`close`.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import aclosing
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from kernel_foundry.domain.admission import Admission
from kernel_foundry.domain.archive import DEFAULT_STRATEGY, Elite, Run
from kernel_foundry.domain.candidate import KernelSource
from kernel_foundry.domain.device import Capabilities
from kernel_foundry.domain.digest import content_digest
from kernel_foundry.domain.evaluation import Evaluation, Setting
from kernel_foundry.domain.foreign import FOREIGN_LIMITS, ForeignRequest, ForeignSource
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.model_limit import ModelLimit
from kernel_foundry.domain.request import EvaluationLimits, EvaluationRequest
from kernel_foundry.domain.steering import Steering, SteeringEvent
from kernel_foundry.domain.sweep import Configuration, ConfigurationResult, SweepRequest
from kernel_foundry.domain.task import Task
from kernel_foundry.domain.unreadable_candidate import unreadable_candidate, unreadable_sweep
from kernel_foundry.errors import FoundryClosedError, KernelFoundryError, RunNotFoundError
from kernel_foundry.evidence.record import EvidenceRecord, record_of
from kernel_foundry.plan.candidate_text import ExtractionError, split
from kernel_foundry.ports import Archive, Evaluator, Experience, Generator
from kernel_foundry.sdk.archive_pages import all_runs
from kernel_foundry.sdk.arguments import as_models, as_source, as_task, as_text
from kernel_foundry.sdk.device_classes.optimization import ClassesResult, optimize_classes
from kernel_foundry.sdk.fleet.fleet import hosts_of
from kernel_foundry.sdk.fleet.host import FleetHost
from kernel_foundry.sdk.foreign_file import read_foreign
from kernel_foundry.sdk.local.evaluator import own_public_key
from kernel_foundry.sdk.local_files import remove_run_files, rename_run_files
from kernel_foundry.sdk.loop.budget import DEFAULT_EVALUATIONS, Budget
from kernel_foundry.sdk.loop.progress import Event, Listener, RunResult, nothing_passed
from kernel_foundry.sdk.loop.promotion import winner
from kernel_foundry.sdk.notebook.run_view import RunView, run_view
from kernel_foundry.sdk.optimization import able_models, optimize, resume
from kernel_foundry.sdk.selftest.case import Case, CaseResult
from kernel_foundry.sdk.selftest.run import SelfTest, selftest
from kernel_foundry.sdk.services import Directory, Services, Targets
from kernel_foundry.sdk.steering import steer_run
from kernel_foundry.sdk.verification.verify import (
    Verification,
    is_intact,
    verification,
    verify_by_judging,
)
from kernel_foundry.tracing import begin_tracing

T = TypeVar("T")


def _silent(_event: Event) -> None:
    """Listen to nothing."""


def _ignore(_result: ConfigurationResult | CaseResult) -> None:
    """Listen to nothing."""


def connect(targets: Targets = Targets()) -> "Foundry":  # noqa: B008  frozen, a plain value
    """Return a `Foundry` on services at `targets`; by default all run in this process.

    Traces begin where `KERNEL_FOUNDRY_TRACES` asks for them (docs/observability.md).
    """
    begin_tracing("loop")
    return Foundry(targets)


class Foundry:
    """The system as a Python object and context manager; once closed: `FoundryClosedError`."""

    def __init__(self, targets: Targets) -> None:
        self._runner = asyncio.Runner()
        self._directory = Directory(targets)
        self._is_closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End all started processes and close all connections; a second call does nothing."""
        if self._is_closed:
            return
        self._run(self._directory.close())
        self._is_closed = True
        self._runner.close()

    def capabilities(self) -> Capabilities:
        """Return devices, what is missing and why, and the isolation of candidates."""
        return self._run(self._with_evaluator(lambda e: e.capabilities()))

    def hosts(self) -> tuple[FleetHost, ...]:
        """Return the evaluators of a fleet; raises InvalidArgumentError if there is only one."""
        return self._run(self._with_evaluator(hosts_of))

    def admit(self, task: Task | Path | str, *, device: str = "") -> Admission:
        """Run the reference, time its baselines, derive the tolerance; see `ports.Evaluator`."""
        loaded = as_task(task)
        return self._run(self._with_evaluator(lambda e: e.admit(loaded, device)))

    def able_models(
        self, admission: Admission, models: tuple[str, ...] = ()
    ) -> tuple[tuple[str, ...], tuple[ModelLimit, ...]]:
        """Return which of `models` can propose for an admitted task, and why the others cannot.

        Args:
            admission: The result of `admit` for a task that was admitted.
            models: As for `optimize`.
        """
        return self._run(
            self._with_generator(lambda g: able_models(g, as_models(models), admission))
        )

    def evaluate(
        self,
        task: Task | Path | str,
        candidate: KernelSource | str | Path,
        *,
        device: str = "",
        configuration: tuple[Setting, ...] = (),
        limits: EvaluationLimits = EvaluationLimits(),  # noqa: B008  frozen, a plain value
        fresh_baselines: bool = False,
        use_tools: bool = False,
        profile_seconds: float | None = None,
        build_only: bool = False,
        architecture: str = "",
        with_listings: bool = False,
        with_objects: bool = False,
    ) -> Evaluation:
        """Judge one candidate: its source, its Markdown text, or the path of its file.

        The arguments are those of `EvaluationRequest`. Never raises for a bad candidate; see
        `ports.Evaluator.evaluate`.
        """
        loaded = as_task(task)
        if isinstance(candidate, KernelSource):
            source = candidate
        else:
            text = as_text(candidate)
            try:
                source = split(text)
            except ExtractionError as error:
                return unreadable_candidate(content_digest(text), error.message, loaded, device)
        request = EvaluationRequest(
            task=loaded,
            device=device,
            source=source,
            configuration=configuration,
            limits=limits,
            fresh_baselines=fresh_baselines,
            use_tools=use_tools,
            profile_seconds=profile_seconds,
            build_only=build_only,
            architecture=architecture,
            with_listings=with_listings,
            with_objects=with_objects,
        )
        return self._run(self._with_evaluator(lambda e: e.evaluate(request)))

    def evaluate_foreign(
        self,
        task: Task | Path | str,
        candidate: ForeignSource | Path,
        *,
        device: str = "",
        limits: EvaluationLimits = FOREIGN_LIMITS,
        fresh_baselines: bool = False,
    ) -> Evaluation:
        """Judge a foreign kernel: its sources, or the path of a file of them.

        Never raises for a bad one; see `ports.Evaluator.evaluate_foreign`.

        Raises:
            InvalidArgumentError: the file holds no kernel in a form that can be judged.
        """
        request = ForeignRequest(
            task=as_task(task),
            device=device,
            source=read_foreign(candidate) if isinstance(candidate, Path) else candidate,
            limits=limits,
            fresh_baselines=fresh_baselines,
        )
        return self._run(self._with_evaluator(lambda e: e.evaluate_foreign(request)))

    def record(
        self,
        task: Task | Path | str,
        candidate: KernelSource | str | Path,
        evaluation: Evaluation,
    ) -> EvidenceRecord:
        """Return the evidence record of the verdict of `evaluate` on `candidate`.

        `evidence.record.write_record` writes it; `sdk.record_of_run.record_of_run` returns those of
        runs.

        Raises:
            InvalidArgumentError: the verdict is unsigned, because the candidate did not pass, or it
                is on another candidate.
            ExtractionError: the text holds no candidate.
        """
        return record_of(as_task(task), as_source(candidate), evaluation)

    def verify(
        self,
        record: EvidenceRecord,
        *,
        device: str = "",
        keys: tuple[str, ...] = (),
        runs_again: bool = True,
    ) -> Verification:
        """Check a record, judge its candidate again on the same seeds, and report what agrees.

        If a record is not what was signed, its candidate is not run.

        Args:
            record: The record.
            device: Device id or kind; empty: any of the kind it was judged on.
            keys: Public keys or fingerprints that are trusted; empty: any, and the result names the
                signer.
            runs_again: Whether to judge again.
        """
        own_key = own_public_key()

        async def again(evaluator: Evaluator) -> Verification:
            return await verify_by_judging(record, evaluator, device, own_key=own_key, trusted=keys)

        if runs_again and is_intact(record):
            return self._run(self._with_evaluator(again))
        return verification(record, None, own_key=own_key, trusted=keys)

    def sweep(
        self,
        task: Task | Path | str,
        candidate: KernelSource | str | Path,
        *,
        device: str = "",
        limits: EvaluationLimits = EvaluationLimits(),  # noqa: B008  frozen, a plain value
        order: tuple[Configuration, ...] = (),
        max_configurations: int = 1024,
        seconds: float = 600.0,
        listener: Callable[[ConfigurationResult], None] = _ignore,
    ) -> tuple[ConfigurationResult, ...]:
        """Try every configuration of one candidate; return the result of each.

        `domain.sweep.best_of` returns the best; `evaluate` it to get its full verdict.

        Args:
            task: A task, or the path of a KernelBench-format file.
            candidate: As for `evaluate`.
            device: As for `evaluate`.
            limits: Deadlines of each configuration.
            order: Configurations to try first, after the default.
            max_configurations: Most configurations to try.
            seconds: Wall-clock budget.
            listener: Called with each result as soon as it is final.
        """
        loaded = as_task(task)
        try:
            source = as_source(candidate)
        except ExtractionError as error:
            unread = unreadable_sweep(error.message)
            listener(unread)
            return (unread,)
        request = SweepRequest(
            task=loaded,
            device=device,
            source=source,
            limits=limits,
            order=order,
            max_configurations=max_configurations,
            seconds=seconds,
        )

        async def work(evaluator: Evaluator) -> tuple[ConfigurationResult, ...]:
            results = []
            async with aclosing(evaluator.sweep(request)) as stream:
                async for result in stream:
                    listener(result)
                    results.append(result)
            return tuple(results)

        return self._run(self._with_evaluator(work))

    def selftest(
        self,
        *,
        device: str = "",
        cases: Sequence[Case] = (),
        listener: Callable[[CaseResult], None] = _ignore,
    ) -> SelfTest:
        """Probe the evaluator's host, then have cases judged whose verdict is known.

        Args:
            device: Device id, or a kind; empty: the first device of every kind.
            cases: Such as `selftest.case_folder.own_cases()`; may be empty.
            listener: Called with each case's result as it arrives.

        Raises:
            As `selftest.run.selftest`.
        """
        return self._run(
            self._with_evaluator(
                lambda e: selftest(e, device=device, cases=cases, listener=listener)
            )
        )

    def optimize(
        self,
        task: Task | Path | str,
        *,
        language: Language = Language.SYCL,
        device: str = "",
        models: tuple[str, ...] = (),
        budget: Budget = Budget(evaluations=DEFAULT_EVALUATIONS),  # noqa: B008  frozen, a plain value
        limits: EvaluationLimits = EvaluationLimits(),  # noqa: B008  frozen, a plain value
        run: str = "",
        strategy: str = DEFAULT_STRATEGY,
        seed: int = 0,
        in_flight: int = 2,
        without: tuple[str, ...] = (),
        start_from: Sequence[Path | str] = (),
        listener: Listener = _silent,
    ) -> RunResult:
        """Search for a fast correct kernel; return the result of the run.

        `RunResult.winner` is the winner, or None if nothing passed; `RunResult.best` is the winner,
        or raises an error with outcome counts.

        The landscapes of its sweeps are written as T4 files, see `sweep_paths`.

        Args:
            task: A task, or the path of a KernelBench-format file.
            language: Of the kernels.
            device: Device id, or a kind for all its devices; empty: the kind of the language.
            models: LiteLLM model names or "recipes"; empty takes the generator's default. A model
                for one expert has the expert's role as prefix: "memory=openai/gpt-5".
            budget: When to stop.
            limits: Deadlines of each evaluation.
            run: Name of the run; empty makes one from the task and the time.
            strategy: One of `domain.archive.STRATEGY_NAMES`.
            seed: Of every random choice.
            in_flight: Proposals being made at once.
            without: Mechanisms of `domain.mechanisms` to switch off.
            start_from: Candidate files, names of runs, and code (CUDA, C++, PyTorch extensions).
                Candidates that bind to the task are judged first, as parents; the rest is shown to
                the models in the first prompts. See `starting_point`.
            listener: Called with every event.

        Raises:
            TaskBeyondModelsError: none of the models can do the task; nothing was spent.
            TaskRefusedError, TaskInvalidError, AlreadyExistsError, RunHeldError,
            LlmConfigurationError and the other errors of the three ports.
        """
        loaded = as_task(task)
        self._check_models(models)
        return self.with_services(
            lambda services: optimize(
                services,
                loaded,
                language=language,
                device=device,
                models=as_models(models),
                budget=budget,
                limits=limits,
                run=run,
                strategy=strategy,
                seed=seed,
                in_flight=in_flight,
                without=without,
                start_from=start_from,
                listener=listener,
            )
        )

    def optimize_classes(
        self,
        task: Task | Path | str,
        *,
        devices: Sequence[str],
        models: tuple[str, ...] = (),
        budget: Budget = Budget(evaluations=DEFAULT_EVALUATIONS),  # noqa: B008  frozen, a plain value
        limits: EvaluationLimits = EvaluationLimits(),  # noqa: B008  frozen, a plain value
        listener: Callable[[str], Listener] = lambda _label: _silent,
        **more: Any,
    ) -> ClassesResult:
        """Search on several classes of devices at once; return the result of each run.

        Each class has its own run and archive; the runs share lessons and their best
        candidates. `ClassesResult.cross` has each winner's verdict on the other classes.

        Args:
            task: As for `optimize`.
            devices: Names of at least two classes: a kind, a class, words of a model ("h200").
            models: As for `optimize`.
            budget: Evaluations and minutes apply to each run; the rest is divided evenly.
            limits: As for `optimize`.
            listener: Returns the listener of a class's run, given the class's name in `devices`.
            more: `run`, `strategy`, `seed`, `in_flight`, `without` and `start_from` as for
                `optimize`.

        Raises:
            As `sdk.device_classes.optimization.optimize_classes`.
        """
        loaded = as_task(task)
        self._check_models(models)
        return self.with_services(
            lambda services: optimize_classes(
                services,
                loaded,
                devices=devices,
                models=as_models(models),
                budget=budget,
                limits=limits,
                listener=listener,
                **more,
            )
        )

    def resume(
        self,
        run: str = "",
        *,
        budget: Budget = Budget(),  # noqa: B008  frozen, a plain value
        limits: EvaluationLimits = EvaluationLimits(),  # noqa: B008  frozen, a plain value
        models: tuple[str, ...] = (),
        strategy: str = "",
        in_flight: int = 2,
        listener: Listener = _silent,
    ) -> RunResult:
        """Continue a run ("" for the newest) with its settings; no evaluation is repeated.

        Limits that `budget` leaves open are those of the run (`Budget.over`), with its remaining
        minutes. Other models or another strategy apply to this call only. `limits` and `in_flight`
        are not stored with a run. Candidates of `start_from` that were not judged yet are judged
        first.

        Raises:
            InvalidArgumentError: the run has used its budget up, and no more is given, or there is
                no such strategy.
            LlmConfigurationError: there is no such model.
            RunNotFoundError: there is no such run.
            RunHeldError: another loop works on it.
        """
        self._check_models(models)
        return self.with_services(
            lambda services: resume(
                services,
                run,
                budget=budget,
                limits=limits,
                models=as_models(models),
                strategy=strategy,
                in_flight=in_flight,
                listener=listener,
            )
        )

    def with_services(self, work: Callable[[Services], Coroutine[Any, Any, T]]) -> T:
        """Call `work` with all three services, and return the result of its coroutine."""

        async def on_services() -> T:
            return await work(await self._directory.services())

        return self._run(on_services())

    def runs(self, *, mine: bool = False) -> tuple[Run, ...]:
        """Return all runs, newest first; with `mine` only those of this client's user."""

        async def listed(archive: Archive) -> tuple[Run, ...]:
            return tuple([run async for run in all_runs(archive, mine=mine)])

        return self._run(self._with_archive(listed))

    def run(self, name: str = "") -> RunView:
        """Return a run with its evaluations, as a notebook shows it ("" for the newest).

        Raises:
            RunNotFoundError: no such run.
        """
        return self.ask_archive(lambda a: run_view(a, name))

    def ask_evaluator(self, question: Callable[[Evaluator], Coroutine[Any, Any, T]]) -> T:
        """Return the answer of calls on the evaluator alone."""
        return self._run(self._with_evaluator(question))

    def ask_archive(self, question: Callable[[Archive], Coroutine[Any, Any, T]]) -> T:
        """Return the answer of one call on the archive, such as `lambda a: a.elites(name)`."""
        return self._run(self._with_archive(question))

    def ask_generator(self, question: Callable[[Generator], Coroutine[Any, Any, T]]) -> T:
        """Return the answer of one call on the generator, such as `lambda g: g.account(name)`."""
        return self._run(self._with_generator(question))

    def ask_experience(self, question: Callable[[Experience], Coroutine[Any, Any, T]]) -> T:
        """Return the answer of one call on the experience library."""
        return self._run(self._with_experience(question))

    def steer(self, run: str, steering: Steering) -> SteeringEvent:
        """Steer an active run; `sdk.steering.steering_of` makes a `Steering`.

        Raises:
            InvalidArgumentError: the action is invalid, or does not apply now.
            RunNotFoundError: no such run.
        """
        return self._run(steer_run(self._directory, run, steering))

    def best(self, run: str = "") -> Elite:
        """Return the winner of a run ("" for the newest).

        Raises:
            RunNotFoundError: no such run.
            EliteNotFoundError: nothing passed; the message has outcome counts.
        """
        name = self.ask_archive(lambda a: a.get_run(run)).spec.name
        best = self.ask_archive(lambda a: winner(a, name))
        if best is None:
            raise nothing_passed(name, self.ask_archive(lambda a: a.stats(name)).outcomes)
        return best

    def delete(self, run: str) -> None:
        """Delete a run permanently: its evaluations, exchanges, landscapes, report and record.

        Lessons and guidance learnt from it stay.

        Raises:
            InvalidArgumentError: the name is empty.
            RunNotFoundError: no such run.
            RunHeldError: a loop works on it.
        """
        self.ask_archive(lambda a: a.delete_run(run))
        remove_run_files(run)
        self.ask_generator(lambda g: g.forget_run(run))

    def rename(self, run: str, new_name: str) -> Run:
        """Rename a run with its exchanges, landscapes, report and record.

        Raises:
            InvalidArgumentError: the name is empty, or the new name is not allowed.
            RunNotFoundError: no such run.
            AlreadyExistsError: another run has the new name.
            RunHeldError: a loop works on it.
        """
        renamed = self.ask_archive(lambda a: a.rename_run(run, new_name))
        try:
            self.ask_generator(lambda g: g.rename_run(run, new_name))
        except KernelFoundryError:
            self.ask_archive(lambda a: a.rename_run(new_name, run))
            raise
        rename_run_files(run, new_name)
        return renamed

    def exists(self, run: str) -> bool:
        """Return whether a run of that name is in the store."""
        try:
            self.ask_archive(lambda a: a.get_run(run))
        except RunNotFoundError:
            return False
        return True

    def _check_models(self, models: tuple[str, ...]) -> None:
        """Refuse models that cannot be asked before any other service is started."""
        if models:
            self._run(self._with_generator(lambda g: g.check_models(as_models(models))))

    async def _with_evaluator(self, call: Callable[[Evaluator], Coroutine[Any, Any, T]]) -> T:
        return await call(await self._directory.evaluator())

    async def _with_archive(self, call: Callable[[Archive], Coroutine[Any, Any, T]]) -> T:
        return await call(await self._directory.archive())

    async def _with_generator(self, call: Callable[[Generator], Coroutine[Any, Any, T]]) -> T:
        return await call(await self._directory.generator())

    async def _with_experience(self, call: Callable[[Experience], Coroutine[Any, Any, T]]) -> T:
        return await call(await self._directory.experience())

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        if self._is_closed:
            work.close()  # or Python warns that it was never awaited
            raise FoundryClosedError("this Foundry is closed: connect() gives another")
        return self._runner.run(work)
