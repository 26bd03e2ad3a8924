"""The services as protocols; local objects and gRPC clients both implement them.

Methods raise `KernelFoundryError`s for our own failures; a candidate's failure is data.
"""

from collections.abc import AsyncGenerator
from typing import Protocol

from kernel_foundry.domain.account import RunAccount
from kernel_foundry.domain.admission import Admission
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
from kernel_foundry.domain.candidate import Candidate
from kernel_foundry.domain.device import Capabilities
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.domain.exchange import Exchange
from kernel_foundry.domain.foreign import ForeignRequest
from kernel_foundry.domain.gradient import GradientCell, Transition
from kernel_foundry.domain.lesson import AddedLesson, Lesson, LessonHit, LessonQuery
from kernel_foundry.domain.model_limit import ModelLimit
from kernel_foundry.domain.probe import Probe
from kernel_foundry.domain.request import (
    EvaluationRequest,
    Proposal,
    ProposalOutcome,
    ProposalRequest,
)
from kernel_foundry.domain.steering import Steering, SteeringEvent
from kernel_foundry.domain.sweep import ConfigurationResult, SweepRequest
from kernel_foundry.domain.task import Task


class Evaluator(Protocol):
    """Judges candidates on its devices."""

    async def capabilities(self) -> Capabilities:
        """Return devices, what is missing and why, and what isolates candidates."""
        ...

    async def admit(self, task: Task, device: str = "") -> Admission:
        """Run the reference, time baselines, derive the tolerance.

        Cached by task and device. A refused task is an `Admission` with refusals.

        Raises:
            TaskInvalidError: the file is no task or the reference raises.
            BackendUnavailableError: no such device here.
        """
        ...

    async def evaluate(self, request: EvaluationRequest) -> Evaluation:
        """Judge one candidate. Never raises for a bad candidate.

        Raises:
            TaskInvalidError, BackendUnavailableError: as `admit`.
            TaskRefusedError: the task is not admitted.
            ProcessLostError: one of our own processes died.
        """
        ...

    async def evaluate_foreign(self, request: ForeignRequest) -> Evaluation:
        """Judge a foreign kernel. Never raises for a bad one; `trust` is FOREIGN.

        Raises:
            As `evaluate`.
        """
        ...

    def sweep(self, request: SweepRequest) -> AsyncGenerator[ConfigurationResult, None]:
        """Try every configuration of one candidate; yield each result once it is final.

        Closing the generator ends a sweep without request_id; the same request with one gives the
        same results again, from the first on. A text that cannot be read, or is refused, is one
        result without a configuration.

        Raises:
            As `evaluate`, also after some results.
        """
        ...

    async def probe(self, device: str = "") -> tuple[Probe, ...]:
        """Test the evaluator's host: device, clock, and that the sandbox refuses what it must.

        Raises:
            BackendUnavailableError: no such device here.
            IsolationUnavailableError: nothing locks candidates in.
        """
        ...

    async def close(self) -> None:
        """Stop every process and release every device."""
        ...


class Archive(Protocol):
    """Stores evaluations, and selects the parts of the next proposal.

    For methods that read, "" names the newest run; `RunNotFoundError` says that there is none.
    Those that change a run refuse "" (`InvalidArgumentError`).
    """

    async def create_run(self, spec: RunSpec) -> Run:
        """Create a run, or return it when it exists with an equal spec.

        Raises:
            AlreadyExistsError: the name is taken by a run with another spec.
        """
        ...

    async def get_run(self, name: str) -> Run:
        """Return a run; "" names the newest.

        Raises:
            RunNotFoundError: there is none.
        """
        ...

    async def list_runs(
        self, *, limit: int = 100, page_token: str = "", mine: bool = False
    ) -> tuple[Run, ...]:
        """Return up to `limit` runs, newest first; fewer: there are no more.

        Args:
            limit: The most to return.
            page_token: Name of the run behind which to start; "" starts with the newest.
            mine: Only those that belong to the caller.

        Raises:
            InvalidArgumentError: `limit` is less than 1, or there is no such run.
        """
        ...

    async def hold_run(self, name: str, holder: LeaseHolder, budget: RunBudget) -> Run:
        """Acquire or renew the run's lease for `LEASE_SECONDS`; the run becomes RUNNING.

        A run whose lease has expired is shown as interrupted. The budget is kept for whoever
        resumes the run.

        Raises:
            RunHeldError: another loop works on it.
        """
        ...

    async def finish_run(
        self, name: str, state: RunState, *, holder: LeaseHolder | None = None
    ) -> Run:
        """Record the run's state, and end its lease.

        Without effect for a `holder` whose run has become another loop's.
        """
        ...

    async def delete_run(self, name: str) -> None:
        """Remove a run with all its evaluations, for good.

        Raises:
            RunHeldError: a loop works on it.
        """
        ...

    async def rename_run(self, name: str, new_name: str) -> Run:
        """Give a run another name, under which alone it is found from then on.

        Raises:
            InvalidArgumentError: no run may be called so.
            AlreadyExistsError: another run has the new name.
            RunHeldError: a loop works on it.
        """
        ...

    async def steer(self, run: str, steering: Steering) -> SteeringEvent:
        """Steer a run, durably: `select` follows it from then on, and loops look for it.

        What was asked last, asked again, is the event that there is.

        Raises:
            InvalidArgumentError: `steering_fault` says why, or the run was steered
                as often as it may (`MOST_STEERING`).
        """
        ...

    async def steering(
        self, run: str, *, after: int = 0, limit: int = 100
    ) -> tuple[SteeringEvent, ...]:
        """Return up to `limit` steering events with a sequence above `after`, in order."""
        ...

    async def select(self, run: str, *, strategy: str = "") -> Selection:
        """Return the assignment of the next proposal; two calls differ.

        Args:
            run: Its name.
            strategy: Another one than the run's; empty: the run's.

        Raises:
            InvalidArgumentError: there is no such strategy.
        """
        ...

    async def drop_selection(self, run: str, selection: int) -> None:
        """Give an assignment back whose proposal came to nothing; it may be handed out again."""
        ...

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
        """Add a verdict durably, then answer. The same request_id adds once.

        Args:
            run: Name of the run.
            candidate: The candidate; its parents are in the same run.
            evaluation: Its verdict. A candidate added again, as after a new measurement,
                takes the new verdict.
            request_id: Idempotency key.
            cost_usd: What proposing it cost.
            selection: `Selection.sequence` that it answers; None for what nobody asked for.

        Raises:
            AlreadyExistsError: the request_id was used for another candidate, or one with the
                same digest has another source.
            InvalidArgumentError: no request_id, a fitness outside 0 to
                `verdict_limits.MOST_FITNESS`, a verdict on another candidate, a parent that is not
                in this run, or a selection never made.
        """
        ...

    async def elites(self, run: str, *, limit: int | None = None) -> tuple[Elite, ...]:
        """Return the best elite of each cell over all islands, best first; at most `limit`."""
        ...

    async def evaluations(
        self, run: str, *, after: int = 0, limit: int = 100
    ) -> tuple[ArchivedEvaluation, ...]:
        """Return up to `limit` evaluations with a sequence above `after`, in order."""
        ...

    async def transitions(
        self, run: str, *, after: int = 0, limit: int = 100
    ) -> tuple[Transition, ...]:
        """Return up to `limit` transitions with a sequence above `after`, in order."""
        ...

    async def gradient(self, run: str) -> tuple[GradientCell, ...]:
        """Return the gradient field: all cells of the first island, then of the next."""
        ...

    def watch(self, run: str, *, after: int = 0) -> AsyncGenerator[RunEvent, None]:
        """Yield all evaluations with a sequence above `after`, then new ones as they come.

        The last event has the run's state, once it is no longer running. What other processes
        add comes as well. Whoever was cut off goes on after the last sequence it has.

        Raises:
            RunNotFoundError: there is no such run; with the first event.
        """
        ...

    async def stats(self, run: str) -> ArchiveStats:
        """Return the archive's statistics."""
        ...

    async def close(self) -> None:
        """Flush and close the store."""
        ...


class Generator(Protocol):
    """Proposes candidates."""

    async def propose(self, request: ProposalRequest) -> Proposal:
        """Make one proposal. A useless reply is a `Proposal` without candidate.

        Raises:
            LlmQuotaError: the budget or the provider's quota is used up.
            LlmUnavailableError: no model answers.
            LlmConfigurationError: unknown model or missing key.
        """
        ...

    async def report(self, outcome: ProposalOutcome) -> None:
        """Learn from the outcome of a proposal; a second report of it changes nothing.

        A proposal that is not known here, as one of another service, teaches nothing.

        Raises:
            StoreUnavailableError: what was learnt cannot be kept.
        """
        ...

    async def account(self, run: str) -> RunAccount:
        """Return the run's account so far; all zero for a run that is not known here."""
        ...

    async def forget_run(self, run: str) -> None:
        """Remove a run's exchanges and account for good; its lessons and guidance stay."""
        ...

    async def rename_run(self, run: str, new_name: str) -> None:
        """Move a run's exchanges and account to another name.

        Raises:
            AlreadyExistsError: something is kept under the new name.
        """
        ...

    async def exchanges(self, run: str, *, after: int = 0, limit: int = 20) -> tuple[Exchange, ...]:
        """Return up to `limit` exchanges of a run with a sequence above `after`, in order.

        Raises:
            CorruptArchiveError: a recorded one is damaged or gone.
        """
        ...

    async def check_models(self, models: tuple[str, ...]) -> None:
        """Check that models exist and have what they need, such as a key; costs nothing.

        Args:
            models: As in `ProposalRequest.models`.

        Raises:
            LlmConfigurationError: unknown provider, or a key that is not set.
        """
        ...

    async def model_limits(
        self, models: tuple[str, ...], admission: Admission
    ) -> tuple[ModelLimit, ...]:
        """Return which of `models` can propose nothing for the admitted task; costs nothing.

        Args:
            models: As in `ProposalRequest.models`.
            admission: The task, on the device that will judge.
        """
        ...

    async def list_models(self) -> tuple[str, ...]:
        """Return the models that can be used now, the default first."""
        ...

    async def close(self) -> None:
        """Release connections."""
        ...


class Experience(Protocol):
    """Remembers what earlier candidates taught."""

    async def lessons(self, *, after: int = 0, limit: int = 100) -> tuple[Lesson, ...]:
        """Return up to `limit` lessons with an id above `after`, in order."""
        ...

    async def search(self, query: LessonQuery, *, limit: int = 5) -> tuple[LessonHit, ...]:
        """Return the lessons that suit `query`, best first."""
        ...

    async def add(self, lesson: Lesson) -> AddedLesson:
        """Store a lesson durably, or merge it into a near-duplicate.

        Raises:
            InvalidArgumentError: it says nothing, or its code is too long.
        """
        ...

    async def close(self) -> None:
        """Release the store."""
        ...
