"""The loop: select, propose, evaluate, archive, report, until a budget ends it.

Steady-state and asynchronous: several proposals are in flight, and an evaluation never waits
for the slowest reply. Every verdict is stored before it is reported, so a killed loop resumes
from its last one. Proposals are made in `proposer.py`, the budget is counted in `budget_meter.py`,
sweeps are chosen in `sweeping.py`, what people ask is read in `run_steering.py`, and the winner is
measured again in `promotion.py`.
Source: asynchronous steady-state MAP-Elites (docs/design.md, 9).
"""

import asyncio
import contextlib
import uuid
from dataclasses import replace
from typing import Literal

from kernel_foundry.domain.admission import Admission
from kernel_foundry.domain.archive import AddStatus, Elite, Run, RunBudget, RunState
from kernel_foundry.domain.candidate import Candidate, KernelSource
from kernel_foundry.domain.evaluation import Evaluation, Setting
from kernel_foundry.domain.mechanisms import PROFILES, SWEEPS
from kernel_foundry.domain.request import (
    EvaluationLimits,
    EvaluationRequest,
    ProposalOutcome,
    Yardstick,
)
from kernel_foundry.domain.unreadable_candidate import unreadable_candidate
from kernel_foundry.domain.verdict_limits import check_verdict
from kernel_foundry.errors import (
    DeviceMemoryError,
    InvalidArgumentError,
    KernelFoundryError,
    TaskRefusedError,
)
from kernel_foundry.ports import Archive, Evaluator, Generator
from kernel_foundry.sdk.loop.budget import Budget, StopCause
from kernel_foundry.sdk.loop.budget_meter import BudgetMeter
from kernel_foundry.sdk.loop.lease import Finish
from kernel_foundry.sdk.loop.progress import (
    AdmissionEvent,
    Listener,
    LostCandidateEvent,
    RunResult,
    SweepEvent,
    VerdictEvent,
)
from kernel_foundry.sdk.loop.promotion import Promotion, promotions, winner
from kernel_foundry.sdk.loop.proposal_queue import ProposalQueue
from kernel_foundry.sdk.loop.proposer import PendingProposal, Proposer
from kernel_foundry.sdk.loop.run_steering import RunSteering
from kernel_foundry.sdk.loop.sweeping import Sweeper, cost_of
from kernel_foundry.tracing import add_stages

UNJUDGED_BEFORE_GIVING_UP = 8
"""Consecutive out-of-memory evaluations before the run fails."""


class Evolution:
    """One run of the loop.

    Args:
        evaluator: Judges.
        archive: Remembers; the run exists there.
        generator: Proposes.
        run: As the archive describes it.
        budget: When to stop.
        limits: Deadlines of each evaluation.
        in_flight: Proposals being made at once, at most: a small budget allows fewer.
        judging: Evaluations at once; more than one pays where there are several devices, or
            where builds do not disturb timings.
        listener: Told of every event, in the loop's thread.
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
    ) -> None:
        self._evaluator = evaluator
        self._archive = archive
        self._generator = generator
        self._run = run
        self._meter = BudgetMeter(budget, run)
        self._in_flight = budget.in_flight(in_flight)
        self._steering = RunSteering(archive, run.spec.name, self._meter, listener)
        self._proposer = Proposer(
            archive, generator, run.spec, self._meter, self._steering, in_flight=self._in_flight
        )
        self._limits = limits
        self._judging = judging
        self._listener = listener
        self._finish_held: Finish | None = None
        self._unjudged = 0
        self._best: Elite | None = None
        self._sweeper = Sweeper(evaluator, run.spec, limits)
        self._yardsticks: tuple[Yardstick, ...] = ()

    @property
    def budget_left(self) -> RunBudget:
        """What is left of its budget, for whoever goes on with the run."""
        return self._meter.left()

    async def run(self, finish: Finish | None = None) -> RunResult:
        """Run until a budget ends it; return how it ended.

        Args:
            finish: Finishes the run; None: nobody holds its lease. See `lease`.

        Raises:
            TaskRefusedError: the task is not admitted; the message says why.
            KernelFoundryError: a service failed for good; the run can be resumed.
        """
        spec = self._run.spec
        self._finish_held = finish
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
                    budget=self._meter.budget,
                    spent=replace(self._meter.used),
                )
            )
            await self._steering.begin()
            following = asyncio.create_task(self._steering.follow())
            try:
                await self._sweep_recalled()
                await self._judge_first_candidates()
                await self._search(admission)
            finally:
                following.cancel()
            await self._promote()
        except (asyncio.CancelledError, KernelFoundryError):
            # The archive may be what failed; what was added is there all the same.
            with contextlib.suppress(KernelFoundryError):
                await asyncio.shield(self._finish(RunState.INTERRUPTED))
            raise
        return await self._end()

    async def _recall(self) -> None:
        """Take up what is in the archive, so that nothing is judged twice."""
        name, after = self._run.spec.name, 0
        meter, seen = self._meter, self._proposer.seen
        began_with: tuple[Yardstick, ...] = ()
        while archived := await self._archive.evaluations(name, after=after, limit=20):
            for entry in archived:
                check_verdict(entry.candidate, entry.evaluation, self._run.spec.task)
                is_new = entry.candidate.digest not in seen
                # What was measured once more at the end of the run is no part of its budget.
                if is_new or entry.evaluation.swept_count:
                    meter.used.evaluations += 1
                if entry.evaluation.swept_count:
                    meter.charge_sweep(self._sweeper.recall(entry))
                meter.used.promotions += entry.evaluation.is_final
                seen.add(entry.candidate.digest)
                began_with = began_with or _yardsticks_of(entry.evaluation)
            after = archived[-1].sequence
        self._yardsticks = began_with or self._yardsticks
        # What was paid for and never added, as by a loop that was killed, counts too.
        account = await self._generator.account(name)
        paid_usd = sum(s.usd for s in account.spend)
        meter.used.cost_usd = max(meter.used.cost_usd, paid_usd)
        meter.used.tokens = sum(s.prompt_tokens + s.completion_tokens for s in account.spend)
        await self._refresh_best()

    async def _sweep_recalled(self) -> None:
        """Sweep the best candidate of a resumed run, unless that was done before."""
        await self._steering.until_unpaused()
        if self._best is not None:
            await self._sweep(self._best.candidate, self._best.evaluation, is_elite=True)

    async def _judge_first_candidates(self) -> None:
        """Judge the candidates that the run begins with, those that a killed loop left as well."""
        for source in self._run.spec.first_candidates:
            await self._steering.until_unpaused()
            if source.digest in self._proposer.seen or self._meter.stop_cause() is not None:
                continue
            self._proposer.seen.add(source.digest)
            candidate = Candidate(source=source)
            with self._meter.judging(1):
                judged = await self._judge(PendingProposal(candidate=candidate))
                if judged is not None:
                    is_elite = judged.result.status is not AddStatus.NOT_ADDED
                    await self._sweep(candidate, judged.evaluation, is_elite=is_elite)

    async def _search(self, admission: Admission) -> None:
        """Propose and judge side by side; whichever meets the end of the budget stops both."""
        queue: ProposalQueue[PendingProposal] = ProposalQueue(
            producers=self._in_flight, consumers=self._judging
        )
        try:
            async with asyncio.TaskGroup() as group:
                # What was given comes before what is proposed.
                others = [group.create_task(self._keep_injecting(queue))]
                others += (
                    group.create_task(self._proposer.keep_proposing(admission, queue))
                    for _ in range(self._in_flight)
                )
                judges = [
                    group.create_task(self._keep_judging(queue)) for _ in range(self._judging)
                ]
                stopped = group.create_task(self._steering.stopped.wait())
                await self._until_ended(judges, queue, stopped)
                for task in (*others, stopped):
                    task.cancel()
        except ExceptionGroup as failures:
            raise _first(failures) from failures
        self._meter.stop(self._proposer.dried_up)

    async def _until_ended(
        self,
        judges: list[asyncio.Task[None]],
        queue: ProposalQueue[PendingProposal],
        stopped: asyncio.Task[Literal[True]],
    ) -> None:
        """Wait for the judges, but for no model once the time is up or the run is stopped."""
        judging = set(judges)
        while judging:
            await asyncio.wait(
                {*judging, stopped},
                timeout=self._meter.left_s(),
                return_when=asyncio.FIRST_COMPLETED,
            )
            judging = {judge for judge in judging if not judge.done()}
            if judging and self._meter.stop_cause() is not None:
                queue.end()
                await asyncio.wait(judging)
                return

    async def _keep_injecting(self, queue: ProposalQueue[PendingProposal]) -> None:
        """Have candidates judged that the run's user gives."""
        while True:
            source = await self._steering.next_candidate()
            if source.digest not in self._proposer.seen:
                self._proposer.seen.add(source.digest)
                await queue.put(PendingProposal(candidate=Candidate(source=source)))

    async def _keep_judging(self, queue: ProposalQueue[PendingProposal]) -> None:
        """Judge until the budget is used up or every proposer has ended."""
        while (pending := await queue.take()) is not None:
            if self._meter.is_spoken_for:
                pending.trace.end(outcome="dropped")
                continue
            with self._meter.judging(1):
                judged = await self._judge(pending)
                if judged is None:
                    continue
                if pending.selection is not None:
                    with pending.trace.step("report"):
                        await self._generator.report(
                            ProposalOutcome(
                                run=self._run.spec.name,
                                selection=pending.selection,
                                candidate=pending.candidate,
                                evaluation=judged.evaluation,
                            )
                        )
                is_elite = judged.result.status is not AddStatus.NOT_ADDED
                with pending.trace.step("sweep"):
                    await self._sweep(pending.candidate, judged.evaluation, is_elite=is_elite)
            pending.trace.end(outcome=judged.evaluation.outcome.value)
            if self._meter.stop_cause() is not None:
                queue.end()

    async def _judge(self, pending: PendingProposal) -> VerdictEvent | None:
        """Evaluate and archive one candidate; None if the device had too little memory.

        Raises:
            DeviceMemoryError: as for many candidates before.
        """
        try:
            judged = await self._evaluate_and_add(pending)
        except DeviceMemoryError as error:
            self._unjudged += 1
            if self._unjudged >= UNJUDGED_BEFORE_GIVING_UP:
                raise DeviceMemoryError(
                    f"{self._unjudged} candidates in a row could not be judged: {error.message};"
                    " choose smaller sizes, or let nothing else use the device",
                    **error.metadata,
                ) from error
            self._listener(LostCandidateEvent(candidate=pending.candidate, reason=error.message))
            pending.trace.end(outcome=error.reason)
            if pending.selection is not None:
                await self._archive.drop_selection(self._run.spec.name, pending.selection)
            return None
        self._unjudged = 0
        return judged

    async def _evaluate_and_add(self, pending: PendingProposal) -> VerdictEvent:
        """Evaluate and archive one candidate.

        A reply without a candidate is archived as one that failed. So is a source that the
        evaluator refuses to read; the run goes on.
        """
        candidate, unreadable = pending.candidate, pending.failure
        if not unreadable:
            try:
                with pending.trace.step("evaluate"):
                    evaluation = await self._evaluate(candidate.source)
                    add_stages([(stage.stage, stage.wall_ms) for stage in evaluation.stages])
            except InvalidArgumentError as error:
                if error.metadata.get("field") != "source":
                    raise
                unreadable = error.message
        if unreadable:
            spec = self._run.spec
            evaluation = unreadable_candidate(candidate.digest, unreadable, spec.task, spec.device)
        request_id = uuid.uuid4().hex
        with pending.trace.step("archive"):
            return await self._add(
                candidate, evaluation, request_id=request_id, selection=pending.selection
            )

    async def _evaluate(
        self,
        source: KernelSource,
        *,
        configuration: tuple[Setting, ...] = (),
        is_promotion: bool = False,
        has_profile: bool = False,
    ) -> Evaluation:
        spec, meter = self._run.spec, self._meter
        with meter.profiling() as seconds, meter.evaluation_time():
            evaluation = await self._evaluator.evaluate(
                EvaluationRequest(
                    task=spec.task,
                    device=spec.device,
                    source=source,
                    configuration=configuration,
                    limits=self._limits,
                    fresh_baselines=is_promotion,
                    yardsticks=self._yardsticks,
                    stop_above_ns=() if is_promotion else self._incumbent_ns(),
                    use_tools=True,
                    sanitize=is_promotion,
                    profile_seconds=None if has_profile or not self._profiles else seconds,
                    request_id=uuid.uuid4().hex,
                )
            )
        meter.charge_profile(evaluation)
        return evaluation

    @property
    def _profiles(self) -> bool:
        return PROFILES not in self._run.spec.without

    async def _add(
        self,
        candidate: Candidate,
        evaluation: Evaluation,
        *,
        request_id: str,
        selection: int | None = None,
        is_promotion: bool = False,
    ) -> VerdictEvent:
        """Add a verdict to the archive, and report it to the listener."""
        result = await self._archive.add(
            self._run.spec.name,
            candidate,
            evaluation,
            request_id=request_id,
            cost_usd=self._proposer.take_cost_usd(),
            selection=selection,
        )
        await self._refresh_best()
        used = self._meter.used
        used.archived += 1
        if is_promotion:
            used.promotions += 1
        else:
            used.evaluations += 1
        self._meter.read_clock()
        judged = VerdictEvent(
            candidate=candidate,
            evaluation=evaluation,
            result=result,
            spent=used,
            best=self._best,
            is_promotion=is_promotion,
        )
        self._listener(judged)
        return judged

    async def _sweep(self, candidate: Candidate, evaluation: Evaluation, *, is_elite: bool) -> None:
        """Try the other configurations of a promising candidate; archive the best one's verdict."""
        if SWEEPS in self._run.spec.without:
            return
        if self._best is None or not self._sweeper.is_promising(
            candidate, evaluation, self._best.evaluation, is_elite=is_elite
        ):
            return
        meter = self._meter
        allowance = self._sweeper.allowance(
            candidate, meter.budget, meter.used, in_judgement=meter.in_judgement
        )
        if self._meter.stop_cause() is not None or allowance.configurations < 2:
            return
        try:
            with meter.judging(cost_of(allowance.configurations)), meter.profiling() as seconds:
                if self._profiles:
                    allowance = replace(allowance, profile_seconds=seconds)
                swept = await self._sweeper.sweep(candidate, evaluation, allowance)
        except (DeviceMemoryError, InvalidArgumentError) as error:
            # Some of its parameters may be outside what a request allows.
            self._listener(LostCandidateEvent(candidate=candidate, reason=error.message))
            return
        meter.charge_sweep(cost_of(len(swept.results)))
        if swept.judged is not None:
            meter.charge_profile(swept.judged)
        meter.read_clock()
        self._listener(SweepEvent(candidate=candidate, results=swept.results, spent=meter.used))
        if swept.evaluation is not None:
            # The name depends only on the candidate, so a repeated sweep is stored once.
            name = f"{self._run.spec.name} sweep of {candidate.digest}"
            request_id = uuid.uuid5(uuid.NAMESPACE_OID, name).hex
            await self._add(candidate, swept.evaluation, request_id=request_id)

    async def _promote(self) -> None:
        """Measure what leads again, until the run has a winner that was."""

        async def elites(limit: int) -> tuple[Elite, ...]:
            return await self._archive.elites(self._run.spec.name, limit=limit)

        async def measure(elite: Elite) -> Evaluation:
            known = elite.evaluation
            evaluation = await self._evaluate(
                elite.candidate.source,
                configuration=known.configuration,
                is_promotion=True,
                has_profile=known.profile is not None and bool(known.profile.tool),
            )
            # The same kernels on a device of the same kind need not be counted again.
            return replace(evaluation, profile=evaluation.profile or known.profile)

        async def add(candidate: Candidate, evaluation: Evaluation) -> None:
            request_id = uuid.uuid4().hex
            await self._add(candidate, evaluation, request_id=request_id, is_promotion=True)

        def is_late() -> bool:
            return self._meter.is_late

        def unjudged(candidate: Candidate, reason: str) -> None:
            self._listener(LostCandidateEvent(candidate=candidate, reason=reason))

        await Promotion(
            elites=elites,
            measure=measure,
            add=add,
            is_late=is_late,
            unjudged=unjudged,
            most=promotions(self._meter.used.evaluations),
        ).run()

    async def _end(self) -> RunResult:
        run = await self._finish(RunState.FINISHED)
        self._meter.read_clock()
        ended = RunResult(
            run=run,
            cause=self._meter.stop_cause() or StopCause.EXHAUSTED,
            winner=await winner(self._archive, run.spec.name),
            spent=self._meter.used,
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
            self._meter.keep_best(self._best)

    def _incumbent_ns(self) -> tuple[float, ...]:
        if self._best is None:
            return ()
        calls = (w.call_bounds_ns for w in self._best.evaluation.workloads)
        return tuple(bounds[1] for bounds in calls if bounds is not None)


def _yardsticks(admission: Admission) -> tuple[Yardstick, ...]:
    """The yardsticks of a run that begins now."""
    return tuple(
        Yardstick(workload=w.workload, time_ns=min(b.timing.median_ns for b in w.baselines))
        for w in admission.workloads
        if w.baselines
    )


def _yardsticks_of(evaluation: Evaluation) -> tuple[Yardstick, ...]:
    """The yardsticks that a verdict of this run was given; empty if it was not timed."""
    return tuple(
        Yardstick(workload=w.workload, time_ns=w.yardstick_ns)
        for w in evaluation.workloads
        if evaluation.passed and w.yardstick_ns is not None
    )


def _first(failures: ExceptionGroup[Exception]) -> Exception:
    """The first failure itself: callers catch its type, not a group."""
    inner = failures.exceptions[0]
    return _first(inner) if isinstance(inner, ExceptionGroup) else inner
