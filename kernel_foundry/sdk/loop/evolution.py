"""The loop: select, propose, evaluate, tell, report, until a budget ends it.

Steady-state and asynchronous: several proposals are in flight, and an evaluation never waits
for the slowest reply. Everything told is durable, so a killed loop resumes where it was. Knows
the three services only as ports.
Source: asynchronous steady-state MAP-Elites (design: loop).
"""

import asyncio
import contextlib
import time
import uuid
from dataclasses import dataclass, replace

from kernel_foundry.domain.admission import Admission
from kernel_foundry.domain.archive import AddStatus, Elite, Run, RunState, Selection
from kernel_foundry.domain.candidate import Candidate, KernelSource
from kernel_foundry.domain.evaluation import Evaluation, EvaluationOutcome, Setting
from kernel_foundry.domain.finding import Finding, FindingKind, Severity
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.request import (
    BudgetCaps,
    EvaluationLimits,
    EvaluationRequest,
    Proposal,
    ProposalOutcome,
    ProposalRequest,
    Yardstick,
)
from kernel_foundry.domain.verdict_limits import check_verdict
from kernel_foundry.errors import (
    DeviceMemoryError,
    InvalidArgumentError,
    KernelFoundryError,
    LlmQuotaError,
    LlmUnavailableError,
    ServiceUnavailableError,
    TaskRefusedError,
)
from kernel_foundry.plan.candidate_text import render
from kernel_foundry.ports import Archive, Evaluator, Generator
from kernel_foundry.sdk.loop.budget import Budget, BudgetUse, StopCause, exceeded
from kernel_foundry.sdk.loop.handover import Handover
from kernel_foundry.sdk.loop.lease import Finish
from kernel_foundry.sdk.loop.progress import (
    AdmissionEvent,
    Listener,
    LostCandidateEvent,
    RunResult,
    SweepEvent,
    VerdictEvent,
)
from kernel_foundry.sdk.loop.promotion import Promotion, winner
from kernel_foundry.sdk.loop.sweeping import Sweeper, cost_of

REPEATS_BEFORE_EXHAUSTED = 40
"""Proposals in a row that were judged before; then the search space counts as used up."""

UNANSWERED_BEFORE_GIVING_UP = 8
"""Calls in a row, of each proposal in flight, that no model answers; each has been retried."""

UNJUDGED_BEFORE_GIVING_UP = 8
"""Evaluations in a row that the device had not the memory for; then it never will."""

_LONGEST_PAUSE_S = 30.0
"""Between calls that no model answers; the first pause is a sixteenth of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingProposal:
    """A proposal on its way to the evaluator."""

    proposal: Proposal
    candidate: Candidate
    selection: int
    """Number of the selection that it answers."""


class Evolution:
    """One run of the loop.

    Args:
        evaluator: Judges.
        archive: Remembers; the run exists there.
        generator: Proposes.
        run: As the archive describes it.
        budget: When to stop.
        limits: Deadlines of each evaluation.
        in_flight: Proposals being made at once.
        judging: Evaluations at once; more than one pays where there are several devices, or
            where builds do not disturb timings.
        listener: Told of every event, in the loop's thread.
        finish: Finishes the run; None: nobody holds its lease. See `lease`.
    """

    def __init__(
        self,
        *,
        evaluator: Evaluator,
        archive: Archive,
        generator: Generator,
        run: Run,
        budget: Budget,
        limits: EvaluationLimits,
        in_flight: int,
        judging: int,
        listener: Listener,
        finish: Finish | None = None,
    ) -> None:
        self._evaluator = evaluator
        self._archive = archive
        self._generator = generator
        self._run = run
        kept = run.spec.stop_at if budget.stop_at is None else budget.stop_at
        self._budget = replace(budget, stop_at=kept)
        self._limits = limits
        self._in_flight = in_flight
        self._judging = judging
        self._in_judgement = 0
        self._listener = listener
        self._finish_held = finish
        self._spent = BudgetUse(told=run.told_count, cost_usd=run.cost_usd)
        self._started_s = time.monotonic()
        self._seen: set[str] = set()
        self._repeats = 0
        self._unanswered = 0
        self._unjudged = 0
        self._untold_usd = 0.0
        self._cause: StopCause | None = None
        # Why no more proposals come; those already made are still judged.
        self._dried_up: StopCause | None = None
        self._slowest_evaluation_s = 0.0
        self._best: Elite | None = None
        self._sweeper = Sweeper(evaluator, run.spec, limits)
        self._yardsticks: tuple[Yardstick, ...] = ()

    async def run(self) -> RunResult:
        """Run until a budget ends it; return how it ended.

        Raises:
            TaskRefusedError: the task is not admitted; the message says why.
            KernelFoundryError: a service failed for good; the run can be resumed.
        """
        spec = self._run.spec
        try:
            admission = await self._evaluator.admit(spec.task, spec.device)
            if not admission.admitted:
                raise TaskRefusedError(
                    f"task {spec.task.name} is refused: {'; '.join(admission.refusals)}",
                    task=spec.task.name,
                )
            self._yardsticks = _yardsticks(admission)
            await self._recall()
            self._sweeper.yardsticks = self._yardsticks
            self._listener(
                AdmissionEvent(
                    run=self._run,
                    admission=admission,
                    budget=self._budget,
                    spent=replace(self._spent),
                )
            )
            await self._sweep_recalled()
            await self._search(admission)
            await self._promote()
        except (asyncio.CancelledError, KernelFoundryError):
            # The archive may be what failed; what was told is there all the same.
            with contextlib.suppress(KernelFoundryError):
                await asyncio.shield(self._finish(RunState.INTERRUPTED))
            raise
        return await self._end()

    async def _recall(self) -> None:
        """Take up what was told before, so that nothing is judged twice."""
        name, after = self._run.spec.name, 0
        began_with: tuple[Yardstick, ...] = ()
        while told := await self._archive.evaluations(name, after=after, limit=20):
            for entry in told:
                check_verdict(entry.candidate, entry.evaluation, self._run.spec.task)
                is_new = entry.candidate.digest not in self._seen
                # What was measured once more at the end of the run is no part of its budget.
                if is_new or entry.evaluation.swept_count:
                    self._spent.evaluations += 1
                    self._charge_sweep(self._sweeper.recall(entry))
                self._seen.add(entry.candidate.digest)
                began_with = began_with or _told_yardsticks(entry.evaluation)
            after = told[-1].sequence
        self._yardsticks = began_with or self._yardsticks
        # What was paid and never told, as by a loop that was killed, counts too.
        account = await self._generator.account(name)
        paid_usd = sum(s.usd for s in account.spend)
        self._spent.cost_usd = max(self._spent.cost_usd, paid_usd)
        self._spent.tokens = sum(s.prompt_tokens + s.completion_tokens for s in account.spend)
        await self._refresh_best()

    async def _sweep_recalled(self) -> None:
        """Sweep the best candidate of a resumed run, unless that was done before."""
        if self._best is not None:
            candidate = self._best.candidate
            text = _markdown(candidate.source)
            await self._sweep(candidate, text, self._best.evaluation, is_elite=True)

    async def _search(self, admission: Admission) -> None:
        """Propose and judge side by side; whichever meets the end of the budget stops both."""
        handover: Handover[PendingProposal] = Handover(makers=self._in_flight, takers=self._judging)
        try:
            async with asyncio.TaskGroup() as group:
                makers = [
                    group.create_task(self._keep_proposing(admission, handover))
                    for _ in range(self._in_flight)
                ]
                judges = [
                    group.create_task(self._keep_judging(handover)) for _ in range(self._judging)
                ]
                await self._until_ended(judges, handover)
                for maker in makers:
                    maker.cancel()
        except ExceptionGroup as failures:
            raise _first(failures) from failures
        self._cause = self._cause or self._dried_up

    async def _until_ended(
        self, judges: list[asyncio.Task[None]], handover: Handover[PendingProposal]
    ) -> None:
        """Wait for the judges, but for no model once the time is up."""
        judging = set(judges)
        while judging:
            _, judging = await asyncio.wait(judging, timeout=self._left_s())
            if judging and self._stop_cause() is not None:
                handover.end()
                await asyncio.wait(judging)
                return

    async def _keep_proposing(
        self, admission: Admission, handover: Handover[PendingProposal]
    ) -> None:
        """Make proposals that were not judged before until the search stops."""
        while self._stop_cause() is None and self._dried_up is None:
            try:
                pending = await self._propose(admission)
            except LlmQuotaError:
                self._dried_up = StopCause.COST
                break
            except (LlmUnavailableError, ServiceUnavailableError):
                # A bad minute of a provider costs that minute; one that is down ends the run. So
                # does one of the generator itself.
                self._unanswered += 1
                if self._unanswered >= UNANSWERED_BEFORE_GIVING_UP * self._in_flight:
                    raise
                await asyncio.sleep(self._pause_s())
                continue
            self._unanswered = 0
            if pending.candidate.digest in self._seen:
                self._repeats += 1
                await self._archive.drop_selection(self._run.spec.name, pending.selection)
                if self._repeats >= REPEATS_BEFORE_EXHAUSTED:
                    self._dried_up = StopCause.EXHAUSTED
                continue
            self._repeats = 0
            self._seen.add(pending.candidate.digest)
            await handover.put(pending)
        handover.maker_ended()

    def _pause_s(self) -> float:
        """How long to wait before models are asked again: longer the more went wrong."""
        halvings = 4 - min(self._unanswered // self._in_flight, 4)
        return _LONGEST_PAUSE_S / float(1 << halvings)

    async def _propose(self, admission: Admission) -> PendingProposal:
        spec = self._run.spec
        selection = await self._archive.select(spec.name)
        try:
            proposal = await self._generator.propose(self._request(admission, selection))
        except (LlmQuotaError, LlmUnavailableError, ServiceUnavailableError):
            await self._archive.drop_selection(spec.name, selection.sequence)
            raise
        for usage in proposal.usage:
            self._spent.cost_usd += usage.cost_usd
            self._untold_usd += usage.cost_usd
            self._spent.tokens += usage.input_tokens + usage.output_tokens
        candidate = candidate_of(proposal, selection, spec.language)
        return PendingProposal(proposal=proposal, candidate=candidate, selection=selection.sequence)

    def _request(self, admission: Admission, selection: Selection) -> ProposalRequest:
        spec, budget = self._run.spec, self._budget
        return ProposalRequest(
            run=spec.name,
            task=spec.task,
            admission=admission,
            selection=selection,
            models=spec.models,
            seed=spec.seed,
            caps=BudgetCaps(
                cost_usd=budget.cost_usd,
                tokens=budget.tokens,
                requests_per_minute=budget.requests_per_minute,
            ),
            spent_usd=self._spent.cost_usd,
            spent_tokens=self._spent.tokens,
            without=spec.without,
        )

    async def _keep_judging(self, handover: Handover[PendingProposal]) -> None:
        """Judge until the budget is used up or every maker has ended."""
        while (pending := await handover.take()) is not None:
            if self._is_spoken_for():
                continue
            candidate, text = pending.candidate, pending.proposal.text
            self._in_judgement += 1
            try:
                judged = await self._judged(candidate, text, pending.selection)
                if judged is None:
                    continue
                await self._generator.report(
                    ProposalOutcome(
                        run=self._run.spec.name,
                        selection=pending.selection,
                        candidate=candidate,
                        evaluation=judged.evaluation,
                    )
                )
                is_elite = judged.result.status is not AddStatus.NOT_ADDED
                await self._sweep(candidate, text, judged.evaluation, is_elite=is_elite)
            finally:
                self._in_judgement -= 1
            if self._stop_cause() is not None:
                handover.end()

    async def _judged(self, candidate: Candidate, text: str, selection: int) -> VerdictEvent | None:
        """Evaluate and tell one candidate; None where its device had not the memory for it.

        Raises:
            DeviceMemoryError: as for many candidates before.
        """
        try:
            judged = await self._judge(candidate, text, selection=selection)
        except DeviceMemoryError as error:
            self._unjudged += 1
            if self._unjudged >= UNJUDGED_BEFORE_GIVING_UP:
                raise DeviceMemoryError(
                    f"{self._unjudged} candidates in a row could not be judged: {error.message};"
                    " choose smaller sizes, or let nothing else use the device",
                    **error.metadata,
                ) from error
            self._listener(LostCandidateEvent(candidate=candidate, reason=error.message))
            await self._archive.drop_selection(self._run.spec.name, selection)
            return None
        self._unjudged = 0
        return judged

    def _is_spoken_for(self) -> bool:
        """Whether what is being judged uses the budget up."""
        if self._stop_cause() is not None:
            return True
        most = self._budget.evaluations
        return most is not None and self._spent.evaluations + self._in_judgement >= most

    async def _judge(self, candidate: Candidate, text: str, *, selection: int) -> VerdictEvent:
        """Evaluate and tell one candidate.

        A text that the evaluator takes for no request, or for another candidate, is a failure of
        that candidate; the run goes on.
        """
        try:
            evaluation = await self._evaluate(text)
        except InvalidArgumentError as error:
            if error.metadata.get("field") != "text":
                raise
            evaluation = self._unreadable(candidate, error.message)
        if evaluation.passed and evaluation.candidate != candidate.digest:
            evaluation = self._unreadable(
                candidate, "read from its text it is another candidate: write plain line ends"
            )
        request_id = uuid.uuid4().hex
        return await self._tell(candidate, evaluation, request_id=request_id, selection=selection)

    async def _evaluate(
        self,
        text: str,
        *,
        configuration: tuple[Setting, ...] = (),
        is_promotion: bool = False,
    ) -> Evaluation:
        spec = self._run.spec
        started_s = time.monotonic()
        evaluation = await self._evaluator.evaluate(
            EvaluationRequest(
                task=spec.task,
                device=spec.device,
                text=text,
                configuration=configuration,
                limits=self._limits,
                fresh_baselines=is_promotion,
                yardsticks=self._yardsticks,
                stop_above_ns=() if is_promotion else self._incumbent_ns(),
                use_tools=True,
                sanitize=is_promotion,
                request_id=uuid.uuid4().hex,
            )
        )
        self._slowest_evaluation_s = max(self._slowest_evaluation_s, time.monotonic() - started_s)
        return evaluation

    def _unreadable(self, candidate: Candidate, why: str) -> Evaluation:
        finding = Finding(kind=FindingKind.EXTRACTION, severity=Severity.ERROR, message=why)
        return Evaluation(
            candidate=candidate.digest,
            task=self._run.spec.task.digest,
            device=self._run.spec.device,
            outcome=EvaluationOutcome.EXTRACTION_FAILED,
            findings=(finding,),
        )

    async def _tell(
        self,
        candidate: Candidate,
        evaluation: Evaluation,
        *,
        request_id: str,
        selection: int | None = None,
        is_promotion: bool = False,
    ) -> VerdictEvent:
        """Tell the archive and the listener of a verdict."""
        cost_usd, self._untold_usd = self._untold_usd, 0.0
        result = await self._archive.tell(
            self._run.spec.name,
            candidate,
            evaluation,
            request_id=request_id,
            cost_usd=cost_usd,
            selection=selection,
        )
        await self._refresh_best()
        self._spent.told += 1
        if not is_promotion:
            self._spent.evaluations += 1
        self._spent.seconds = self._elapsed_s()
        judged = VerdictEvent(
            candidate=candidate,
            evaluation=evaluation,
            result=result,
            spent=self._spent,
            best=self._best,
            is_promotion=is_promotion,
        )
        self._listener(judged)
        return judged

    async def _sweep(
        self, candidate: Candidate, text: str, evaluation: Evaluation, *, is_elite: bool
    ) -> None:
        """Try the other configurations of a promising candidate; tell the best one's verdict."""
        if self._best is None or not self._sweeper.is_promising(
            candidate, evaluation, self._best.evaluation, is_elite=is_elite
        ):
            return
        allowance = self._sweeper.allowance(
            candidate, self._budget, self._spent, in_judgement=self._in_judgement
        )
        if self._stop_cause() is not None or allowance.configurations < 2:
            return
        reserved = cost_of(allowance.configurations)
        self._in_judgement += reserved
        try:
            swept = await self._sweeper.sweep(candidate, text, evaluation, allowance)
        except (DeviceMemoryError, InvalidArgumentError) as error:
            # Of its parameters some may be such as no request has.
            self._listener(LostCandidateEvent(candidate=candidate, reason=error.message))
            return
        finally:
            self._in_judgement -= reserved
        self._charge_sweep(cost_of(len(swept.results)))
        self._spent.seconds = self._elapsed_s()
        self._listener(SweepEvent(candidate=candidate, results=swept.results, spent=self._spent))
        if swept.evaluation is not None:
            # Of the candidate and not of this attempt: a sweep that is repeated tells once.
            name = f"{self._run.spec.name} sweep of {candidate.digest}"
            request_id = uuid.uuid5(uuid.NAMESPACE_OID, name).hex
            await self._tell(candidate, swept.evaluation, request_id=request_id)

    def _charge_sweep(self, cost: int) -> None:
        self._spent.evaluations += cost
        self._spent.sweep_evaluations += cost

    async def _promote(self) -> None:
        """Measure what leads again, until the run has a winner that was."""

        async def elites(limit: int) -> tuple[Elite, ...]:
            return await self._archive.elites(self._run.spec.name, limit=limit)

        async def measure(elite: Elite) -> Evaluation:
            text = _markdown(elite.candidate.source)
            configuration = elite.evaluation.configuration
            return await self._evaluate(text, configuration=configuration, is_promotion=True)

        async def tell(candidate: Candidate, evaluation: Evaluation) -> None:
            request_id = uuid.uuid4().hex
            await self._tell(candidate, evaluation, request_id=request_id, is_promotion=True)

        def is_late() -> bool:
            most = self._budget.minutes
            return most is not None and self._elapsed_s() > 60 * most

        def unjudged(candidate: Candidate, reason: str) -> None:
            self._listener(LostCandidateEvent(candidate=candidate, reason=reason))

        await Promotion(
            elites=elites, measure=measure, tell=tell, is_late=is_late, unjudged=unjudged
        ).run()

    async def _end(self) -> RunResult:
        run = await self._finish(RunState.FINISHED)
        self._spent.seconds = self._elapsed_s()
        ended = RunResult(
            run=run,
            cause=self._stop_cause() or StopCause.EXHAUSTED,
            winner=await winner(self._archive, run.spec.name),
            spent=self._spent,
            outcomes=(await self._archive.stats(run.spec.name)).outcomes,
        )
        self._listener(ended)
        return ended

    async def _finish(self, state: RunState) -> Run:
        if self._finish_held is not None:
            return await self._finish_held(state)
        return await self._archive.finish_run(self._run.spec.name, state)

    async def _refresh_best(self) -> None:
        elites = await self._archive.elites(self._run.spec.name, limit=1)
        self._best = elites[0] if elites else None
        if self._best is not None:
            timed = [w for w in self._best.evaluation.workloads if w.timing]
            shares = [w.traffic_bound_share or 0.0 for w in timed]
            self._spent.traffic_bound_share = min(shares, default=0.0)

    def _incumbent_ns(self) -> tuple[float, ...]:
        if self._best is None:
            return ()
        calls = (w.call_bounds_ns for w in self._best.evaluation.workloads)
        return tuple(bounds[1] for bounds in calls if bounds is not None)

    def _stop_cause(self) -> StopCause | None:
        if self._cause is None:
            self._spent.seconds = self._elapsed_s()
            self._cause = exceeded(self._budget, self._spent, reserve_seconds=self._promotion_s())
        return self._cause

    def _left_s(self) -> float | None:
        """How long the search may yet take; None: as long as it likes."""
        if self._budget.minutes is None:
            return None
        return max(0.0, self._budget.minutes * 60 - self._promotion_s() - self._elapsed_s())

    def _promotion_s(self) -> float:
        """What the end takes: two measurements of about twice an evaluation each."""
        return 4 * self._slowest_evaluation_s

    def _elapsed_s(self) -> float:
        return time.monotonic() - self._started_s


def candidate_of(proposal: Proposal, selection: Selection, language: Language) -> Candidate:
    """Return what is told for a proposal.

    A reply without a candidate is told too: its raw text stands in for the source.
    """
    return proposal.candidate or Candidate(
        source=KernelSource(language=language, device_code=proposal.text, plan=""),
        operator=selection.operator,
        parents=(selection.parent.candidate.digest,) if selection.parent else (),
        model=proposal.usage[-1].model if proposal.usage else "",
    )


def _yardsticks(admission: Admission) -> tuple[Yardstick, ...]:
    """What a run that begins now holds its times against."""
    return tuple(
        Yardstick(workload=w.workload, time_ns=min(b.timing.median_ns for b in w.baselines))
        for w in admission.workloads
        if w.baselines
    )


def _told_yardsticks(evaluation: Evaluation) -> tuple[Yardstick, ...]:
    """What a verdict of this run was held against; empty where it was not timed."""
    return tuple(
        Yardstick(workload=w.workload, time_ns=w.yardstick_ns)
        for w in evaluation.workloads
        if evaluation.passed and w.yardstick_ns is not None
    )


def _first(failures: ExceptionGroup[Exception]) -> Exception:
    """The first failure itself: callers catch its type, not a group."""
    inner = failures.exceptions[0]
    return _first(inner) if isinstance(inner, ExceptionGroup) else inner


def _markdown(source: KernelSource) -> str:
    return render(source.language.value, source.device_code, source.plan)
