"""The evaluations of one run: each is made within the budget, archived, and reported.

`evolution.py` decides what is evaluated and when, `sweeping.py` what a sweep may take.
"""

import uuid
from collections.abc import Callable
from dataclasses import replace

from kernel_foundry.domain.admission import Admission
from kernel_foundry.domain.archive import ArchivedEvaluation, Elite, RunSpec
from kernel_foundry.domain.candidate import Candidate, KernelSource
from kernel_foundry.domain.evaluation import Evaluation, Setting
from kernel_foundry.domain.mechanisms import PROFILES, SWEEPS
from kernel_foundry.domain.request import EvaluationLimits, EvaluationRequest, Yardstick
from kernel_foundry.domain.unreadable_candidate import unreadable_candidate
from kernel_foundry.errors import DeviceMemoryError, InvalidArgumentError
from kernel_foundry.ports import Archive, Evaluator
from kernel_foundry.sdk.loop.budget_meter import BudgetMeter
from kernel_foundry.sdk.loop.progress import (
    Listener,
    LostCandidateEvent,
    SweepEvent,
    VerdictEvent,
)
from kernel_foundry.sdk.loop.proposer import PendingProposal
from kernel_foundry.sdk.loop.sweeping import Sweeper, cost_of
from kernel_foundry.tracing import add_stages

UNJUDGED_BEFORE_GIVING_UP = 8
"""Consecutive out-of-memory evaluations before the run fails."""


class RunEvaluator:
    """Evaluates the candidates of one run and adds their verdicts to the archive.

    Args:
        evaluator: Judges.
        archive: Has the run.
        spec: What the run was asked to do.
        limits: Deadlines of each evaluation.
        meter: Is charged with evaluations, sweeps and profiles.
        listener: Told of verdicts, sweeps and candidates that could not be judged.
        take_cost_usd: Returns what proposals have cost since its last call.
        hint: Returns the words of the run's user for the next proposals, see `Sweeper`.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        archive: Archive,
        spec: RunSpec,
        limits: EvaluationLimits,
        *,
        meter: BudgetMeter,
        listener: Listener,
        take_cost_usd: Callable[[], float],
        hint: Callable[[], str],
    ) -> None:
        self._evaluator = evaluator
        self._archive = archive
        self._spec = spec
        self._limits = limits
        self._meter = meter
        self._listener = listener
        self._take_cost_usd = take_cost_usd
        self._sweeper = Sweeper(evaluator, spec, limits, hint=hint)
        self._unjudged = 0
        self.best: Elite | None = None
        """The run's best elite."""

    @property
    def yardsticks(self) -> tuple[Yardstick, ...]:
        """The baselines when the run began, which fitness compares with."""
        return self._sweeper.yardsticks

    @yardsticks.setter
    def yardsticks(self, yardsticks: tuple[Yardstick, ...]) -> None:
        self._sweeper.yardsticks = yardsticks

    def recall_sweep(self, archived: ArchivedEvaluation) -> int:
        """Take up the verdict of an earlier sweep; return its cost in evaluations."""
        return self._sweeper.recall(archived)

    async def refresh_best(self) -> None:
        """Ask the archive for the best elite."""
        elites = await self._archive.elites(self._spec.name, limit=1)
        self.best = elites[0] if elites else None
        if self.best is not None:
            self._meter.keep_best(self.best)

    async def judge(self, pending: PendingProposal) -> VerdictEvent | None:
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
                await self._archive.drop_selection(self._spec.name, pending.selection)
            return None
        self._unjudged = 0
        return judged

    async def sweep(self, candidate: Candidate, evaluation: Evaluation, *, is_elite: bool) -> None:
        """Try the other configurations of a promising candidate; archive the best one's verdict."""
        if SWEEPS in self._spec.without:
            return
        if self.best is None or not self._sweeper.is_promising(
            candidate, evaluation, self.best.evaluation, is_elite=is_elite
        ):
            return
        meter = self._meter
        allowance = self._sweeper.allowance(
            candidate, meter.budget, meter.used, promised=meter.promised
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
            name = f"{self._spec.name} sweep of {candidate.digest}"
            request_id = uuid.uuid5(uuid.NAMESPACE_OID, name).hex
            await self.add(candidate, swept.evaluation, request_id=request_id)

    async def measure_again(self, elite: Elite) -> Evaluation:
        """Return a second verdict on an elite, with fresh baselines and under sanitizers."""
        known = elite.evaluation
        evaluation = await self._evaluate(
            elite.candidate.source,
            configuration=known.configuration,
            is_promotion=True,
            has_profile=known.profile is not None and bool(known.profile.tool),
        )
        # The same kernels on a device of the same kind need not be counted again.
        return replace(evaluation, profile=evaluation.profile or known.profile)

    async def add(
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
            self._spec.name,
            candidate,
            evaluation,
            request_id=request_id,
            cost_usd=self._take_cost_usd(),
            selection=selection,
        )
        await self.refresh_best()
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
            best=self.best,
            is_promotion=is_promotion,
        )
        self._listener(judged)
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
            evaluation = unreadable_candidate(
                candidate.digest, unreadable, self._spec.task, self._spec.device
            )
        request_id = uuid.uuid4().hex
        with pending.trace.step("archive"):
            return await self.add(
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
        spec, meter = self._spec, self._meter
        with meter.profiling() as seconds, meter.evaluation_time():
            evaluation = await self._evaluator.evaluate(
                EvaluationRequest(
                    task=spec.task,
                    device=spec.device,
                    source=source,
                    configuration=configuration,
                    limits=self._limits,
                    fresh_baselines=is_promotion,
                    yardsticks=self.yardsticks,
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
        return PROFILES not in self._spec.without

    def _incumbent_ns(self) -> tuple[float, ...]:
        if self.best is None:
            return ()
        calls = (w.call_bounds_ns for w in self.best.evaluation.workloads)
        return tuple(bounds[1] for bounds in calls if bounds is not None)


def yardsticks_of(admission: Admission) -> tuple[Yardstick, ...]:
    """Return the yardsticks of a run that begins now."""
    return tuple(
        Yardstick(workload=w.workload, time_ns=min(b.timing.median_ns for b in w.baselines))
        for w in admission.workloads
        if w.baselines
    )


def yardsticks_given(evaluation: Evaluation) -> tuple[Yardstick, ...]:
    """Return the yardsticks that a verdict was made with; empty if it was not timed."""
    return tuple(
        Yardstick(workload=w.workload, time_ns=w.yardstick_ns)
        for w in evaluation.workloads
        if evaluation.passed and w.yardstick_ns is not None
    )
