"""The loop: select, propose, evaluate, archive, report, until a budget ends it.

Steady-state and asynchronous: several proposals are in flight, and an evaluation never waits
for the slowest reply. Every verdict is stored before it is reported, so a killed loop resumes
from its last one. Proposals are made in `proposer.py`; candidates are evaluated and their verdicts
archived in `run_evaluator.py`; the budget is counted in `budget_meter.py`; what people ask is read
in `run_steering.py`; the winner is measured again in `promotion.py`.
Source: asynchronous steady-state MAP-Elites (docs/design.md, 9).
"""

import asyncio
import contextlib
import uuid
from dataclasses import replace
from typing import Literal

from kernel_foundry.domain.admission import Admission
from kernel_foundry.domain.archive import AddStatus, Elite, Run, RunBudget, RunState
from kernel_foundry.domain.candidate import Candidate
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.domain.request import (
    EvaluationLimits,
    ProposalOutcome,
    Yardstick,
)
from kernel_foundry.domain.verdict_limits import check_verdict
from kernel_foundry.errors import KernelFoundryError, TaskRefusedError, first_failure
from kernel_foundry.ports import Archive, Evaluator, Generator
from kernel_foundry.sdk.loop.budget import Budget, StopCause
from kernel_foundry.sdk.loop.budget_meter import BudgetMeter
from kernel_foundry.sdk.loop.lease import Finish
from kernel_foundry.sdk.loop.progress import (
    AdmissionEvent,
    Listener,
    LostCandidateEvent,
    RunResult,
)
from kernel_foundry.sdk.loop.promotion import Promotion, promotions, winner
from kernel_foundry.sdk.loop.proposal_queue import ProposalQueue
from kernel_foundry.sdk.loop.proposer import PendingProposal, Proposer
from kernel_foundry.sdk.loop.run_evaluator import RunEvaluator, yardsticks_given, yardsticks_of
from kernel_foundry.sdk.loop.run_steering import RunSteering


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
        self._judging = judging
        self._listener = listener
        self._finish_held: Finish | None = None
        self._evaluations = RunEvaluator(
            evaluator,
            archive,
            run.spec,
            limits,
            meter=self._meter,
            listener=listener,
            take_cost_usd=self._proposer.take_cost_usd,
            hint=lambda: self._steering.hint,
        )

    @property
    def budget_left(self) -> RunBudget:
        """The rest of its budget, stored for a loop that resumes the run."""
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
            self._evaluations.yardsticks = yardsticks_of(admission)
            await self._recall()
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
            # The archive itself may have failed; evaluations that were added are stored anyway.
            with contextlib.suppress(KernelFoundryError):
                await asyncio.shield(self._finish(RunState.INTERRUPTED))
            raise
        return await self._end()

    async def _recall(self) -> None:
        """Take up what is in the archive, so that nothing is judged twice."""
        name, after = self._run.spec.name, 0
        meter, seen, evaluations = self._meter, self._proposer.seen, self._evaluations
        began_with: tuple[Yardstick, ...] = ()
        while archived := await self._archive.evaluations(name, after=after, limit=20):
            for entry in archived:
                check_verdict(entry.candidate, entry.evaluation, self._run.spec.task)
                is_new = entry.candidate.digest not in seen
                # What was measured once more at the end of the run is no part of its budget.
                if is_new or entry.evaluation.swept_count:
                    meter.used.evaluations += 1
                if entry.evaluation.swept_count:
                    meter.charge_sweep(evaluations.recall_sweep(entry))
                meter.used.promotions += entry.evaluation.is_final
                seen.add(entry.candidate.digest)
                began_with = began_with or yardsticks_given(entry.evaluation)
            after = archived[-1].sequence
        evaluations.yardsticks = began_with or evaluations.yardsticks
        # What was paid for and never added, as by a loop that was killed, counts too.
        account = await self._generator.account(name)
        paid_usd = sum(s.usd for s in account.spend)
        meter.used.cost_usd = max(meter.used.cost_usd, paid_usd)
        meter.used.tokens = sum(s.prompt_tokens + s.completion_tokens for s in account.spend)
        await evaluations.refresh_best()

    async def _sweep_recalled(self) -> None:
        """Sweep the best candidate of a resumed run, unless that was done before."""
        await self._steering.until_unpaused()
        best = self._evaluations.best
        if best is not None:
            await self._evaluations.sweep(best.candidate, best.evaluation, is_elite=True)

    async def _judge_first_candidates(self) -> None:
        """Judge the candidates that the run begins with, those that a killed loop left as well."""
        for source in self._run.spec.first_candidates:
            await self._steering.until_unpaused()
            if source.digest in self._proposer.seen or self._meter.stop_cause() is not None:
                continue
            self._proposer.seen.add(source.digest)
            candidate = Candidate(source=source)
            with self._meter.judging(1):
                judged = await self._evaluations.judge(PendingProposal(candidate=candidate))
                if judged is not None:
                    is_elite = judged.result.status is not AddStatus.NOT_ADDED
                    await self._evaluations.sweep(candidate, judged.evaluation, is_elite=is_elite)

    async def _search(self, admission: Admission) -> None:
        """Propose and judge concurrently; when the budget ends for one, both stop."""
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
                workers = [
                    group.create_task(self._keep_judging(queue)) for _ in range(self._judging)
                ]
                stopped = group.create_task(self._steering.stopped.wait())
                await self._until_ended(workers, queue, stopped)
                for task in (*others, stopped):
                    task.cancel()
        except ExceptionGroup as failures:
            raise first_failure(failures) from failures
        self._meter.stop(self._proposer.stopped_because)

    async def _until_ended(
        self,
        workers: list[asyncio.Task[None]],
        queue: ProposalQueue[PendingProposal],
        stopped: asyncio.Task[Literal[True]],
    ) -> None:
        """Wait for the workers, but for no model once time is up or the run is stopped."""
        busy = set(workers)
        while busy:
            await asyncio.wait(
                {*busy, stopped},
                timeout=self._meter.left_s(),
                return_when=asyncio.FIRST_COMPLETED,
            )
            busy = {worker for worker in busy if not worker.done()}
            if busy and self._meter.stop_cause() is not None:
                queue.end()
                await asyncio.wait(busy)
                return

    async def _keep_injecting(self, queue: ProposalQueue[PendingProposal]) -> None:
        while True:
            source = await self._steering.next_candidate()
            if source.digest not in self._proposer.seen:
                self._proposer.seen.add(source.digest)
                await queue.put(PendingProposal(candidate=Candidate(source=source)))

    async def _keep_judging(self, queue: ProposalQueue[PendingProposal]) -> None:
        """Judge until the budget is used up or every proposer has ended."""
        while (pending := await queue.take()) is not None:
            if pending.selection is not None:
                self._meter.give_back_proposal()
            if self._meter.is_fully_reserved:
                pending.trace.end(outcome="dropped")
                continue
            with self._meter.judging(1):
                judged = await self._evaluations.judge(pending)
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
                    await self._evaluations.sweep(
                        pending.candidate, judged.evaluation, is_elite=is_elite
                    )
            pending.trace.end(outcome=judged.evaluation.outcome.value)
            if self._meter.stop_cause() is not None:
                queue.end()

    async def _promote(self) -> None:
        """Measure what leads again, until the run has a winner that was."""

        async def elites(limit: int) -> tuple[Elite, ...]:
            return await self._archive.elites(self._run.spec.name, limit=limit)

        async def add(candidate: Candidate, evaluation: Evaluation) -> None:
            request_id = uuid.uuid4().hex
            await self._evaluations.add(
                candidate, evaluation, request_id=request_id, is_promotion=True
            )

        def is_late() -> bool:
            return self._meter.is_late

        def unjudged(candidate: Candidate, reason: str) -> None:
            self._listener(LostCandidateEvent(candidate=candidate, reason=reason))

        await Promotion(
            elites=elites,
            measure=self._evaluations.measure_again,
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
