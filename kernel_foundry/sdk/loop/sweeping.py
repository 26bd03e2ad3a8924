"""The loop's own sweeps: which candidates are worth one, what it costs, what it teaches.

A candidate with a search space is judged in its default configuration first. When that is
promising, its other configurations are tried, and the best one becomes the candidate's verdict.
The best parameters of a family go first in the next sweep of that family. The native race is
in `evaluator_svc/pipeline`.
"""

import dataclasses
import math
import uuid
from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass

from kernel_foundry.domain.archive import ArchivedEvaluation, RunSpec
from kernel_foundry.domain.candidate import Candidate
from kernel_foundry.domain.evaluation import Evaluation, Setting
from kernel_foundry.domain.request import EvaluationLimits, EvaluationRequest, Yardstick
from kernel_foundry.domain.speedup import mean_speedup
from kernel_foundry.domain.steering import hinted_values
from kernel_foundry.domain.sweep import (
    Configuration,
    ConfigurationResult,
    SweepRequest,
    best_of,
)
from kernel_foundry.errors import KernelFoundryError
from kernel_foundry.plan.configuration import space_size
from kernel_foundry.plan.errors import PlanError
from kernel_foundry.plan.parse import parse
from kernel_foundry.ports import Evaluator
from kernel_foundry.sdk.loop.budget import Budget, BudgetUse

CONFIGURATIONS_PER_EVALUATION = 8
"""Configurations that count as one evaluation of the budget: they share inputs, reference, runner
and admission, and the slow ones are timed a few times only."""

MOST_CONFIGURATIONS = 64
"""Of the first sweep in a family."""

MOST_IN_KNOWN_FAMILY = 16
"""Of further ones: the best of the family so far comes first."""

BUDGET_SHARE = 0.25
"""Most of what is left of the budget that one sweep may take."""

SWEEP_SECONDS = 120.0
"""Longest sweep, whatever is left."""

ELITE_WITHIN = 3.0
"""An elite is swept if it is at most this many times slower than the best one."""

OTHERS_WITHIN = 1.25
"""A candidate that is no elite is swept if it is at most this many times slower."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepAllowance:
    """The limits of one sweep."""

    configurations: int
    seconds: float
    profile_seconds: float | None = None
    """Of the best configuration's profile; None: it has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepOutcome:
    """The result of a sweep."""

    results: tuple[ConfigurationResult, ...]
    evaluation: Evaluation | None
    """Whole verdict on the best configuration; None when none beats what was known."""
    judged: Evaluation | None = None
    """The same also where it does not beat what was known."""


class Sweeper:
    """Sweeps the candidates of one run.

    Args:
        evaluator: Tries and judges.
        spec: The run.
        limits: Deadlines of each configuration.
        hint: Gives what the run's user asks of the next proposals; the TUNE values that it names
            are tried first.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        spec: RunSpec,
        limits: EvaluationLimits,
        *,
        hint: Callable[[], str] = lambda: "",
    ) -> None:
        self._hint = hint
        self._evaluator = evaluator
        self._spec = spec
        self._limits = limits
        self.yardsticks: tuple[Yardstick, ...] = ()
        """Of the run, for the whole verdicts."""
        self._swept: set[str] = set()
        self._best_of: dict[str, tuple[Setting, ...]] = {}
        """Best configuration of each swept candidate, by digest."""
        self._best_of_names: dict[tuple[str, ...], tuple[Setting, ...]] = {}
        """The newest one for each set of TUNE names."""

    def recall(self, archived: ArchivedEvaluation) -> int:
        """Process an archived verdict; return the cost of its sweep, in evaluations."""
        count = archived.evaluation.swept_count
        if count:
            self._learn(archived.candidate, archived.evaluation.configuration)
        return cost_of(count)

    def is_promising(
        self, candidate: Candidate, evaluation: Evaluation, best: Evaluation, *, is_elite: bool
    ) -> bool:
        """Return whether the other configurations of a judged candidate are worth trying."""
        if not evaluation.passed or candidate.digest in self._swept:
            return False
        reach = ELITE_WITHIN if is_elite else OTHERS_WITHIN
        return _slowdown(evaluation, best) <= reach and _space_size(candidate) > 1

    def allowance(
        self, candidate: Candidate, budget: Budget, spent: BudgetUse, *, promised: int
    ) -> SweepAllowance:
        """Return what a sweep of `candidate` may take of what is left.

        Args:
            candidate: What to sweep.
            budget: The run's.
            spent: What was used.
            promised: Evaluations that are under way, or promised to sweeps and proposals.
        """
        is_known = _names(candidate) in self._best_of_names
        most = MOST_IN_KNOWN_FAMILY if is_known else MOST_CONFIGURATIONS
        if budget.evaluations is not None:
            left = budget.evaluations - spent.evaluations - promised
            most = min(most, math.floor(left * BUDGET_SHARE) * CONFIGURATIONS_PER_EVALUATION)
        seconds = SWEEP_SECONDS
        if budget.minutes is not None:
            left_s = max(60 * budget.minutes - spent.seconds, 0.0)
            seconds = min(seconds, left_s * BUDGET_SHARE)
        return SweepAllowance(configurations=most, seconds=seconds)

    async def sweep(
        self,
        candidate: Candidate,
        known: Evaluation,
        allowance: SweepAllowance,
        *,
        listener: Callable[[ConfigurationResult], None] = lambda _result: None,
    ) -> SweepOutcome:
        """Try the configurations of `candidate` and judge the best one.

        Args:
            candidate: What to sweep.
            known: Its verdict so far.
            allowance: What it may take.
            listener: Told of each result.
        """
        self._swept.add(candidate.digest)
        request = SweepRequest(
            task=self._spec.task,
            device=known.device,
            source=candidate.source,
            limits=self._limits,
            order=self._order(candidate),
            max_configurations=allowance.configurations,
            seconds=allowance.seconds,
        )
        results = []
        try:
            async with aclosing(self._evaluator.sweep(request)) as stream:
                async for result in stream:
                    listener(result)
                    results.append(result)
        except KernelFoundryError as error:
            if not error.may_pass:
                raise
            # An evaluator that goes away for a while costs the rest of the sweep, not the run.
        best = best_of(tuple(results))
        evaluation = None
        if best is not None:
            evaluation = await self._judge(
                candidate, known, best.configuration, allowance.profile_seconds
            )
        if evaluation is None or not _is_better(evaluation, known):
            self._learn(candidate, known.configuration)
            return SweepOutcome(results=tuple(results), evaluation=None, judged=evaluation)
        self._learn(candidate, evaluation.configuration)
        return SweepOutcome(
            results=tuple(results),
            evaluation=dataclasses.replace(evaluation, swept_count=len(results)),
            judged=evaluation,
        )

    async def _judge(
        self,
        candidate: Candidate,
        known: Evaluation,
        configuration: tuple[Setting, ...],
        profile_seconds: float | None,
    ) -> Evaluation | None:
        if configuration == known.configuration:
            return None  # the default is the best
        return await self._evaluator.evaluate(
            EvaluationRequest(
                task=self._spec.task,
                device=known.device,
                source=candidate.source,
                configuration=configuration,
                limits=self._limits,
                request_id=uuid.uuid4().hex,
                yardsticks=self.yardsticks,
                profile_seconds=profile_seconds,
            )
        )

    def _order(self, candidate: Candidate) -> tuple[Configuration, ...]:
        """What the user's hint names; what was best for its parents, and for the same names."""
        found: list[tuple[Setting, ...] | None] = [_listed(candidate, hinted_values(self._hint()))]
        found += [self._best_of.get(parent) for parent in candidate.parents]
        found.append(self._best_of_names.get(_names(candidate)))
        known = set(_names(candidate))
        kept = [tuple(s for s in settings if s.name in known) for settings in found if settings]
        return tuple(Configuration(settings=s) for s in dict.fromkeys(kept) if s)

    def _learn(self, candidate: Candidate, configuration: tuple[Setting, ...]) -> None:
        self._swept.add(candidate.digest)
        self._best_of[candidate.digest] = configuration
        self._best_of_names[_names(candidate)] = configuration


def cost_of(configuration_count: int) -> int:
    """Return what a sweep of so many configurations costs, in evaluations."""
    return math.ceil(configuration_count / CONFIGURATIONS_PER_EVALUATION)


def _slowdown(evaluation: Evaluation, best: Evaluation) -> float:
    """The weighted geometric mean over workloads of a passed one's time over the best one's.

    Not by speed-ups: each verdict's are over baselines of its own moment.
    """
    best_ns = {w.workload: w.timing.bounds_ns for w in best.workloads if w.timing}
    timed = [w for w in evaluation.workloads if w.timing]
    return mean_speedup(
        [(w.timing.bounds_ns, best_ns[w.workload]) for w in timed if w.timing],
        [w.weight for w in timed],
    )


def _is_better(evaluation: Evaluation, known: Evaluation) -> bool:
    return evaluation.passed and evaluation.fitness > known.fitness


def _space_size(candidate: Candidate) -> int:
    try:
        return space_size(parse(candidate.source.plan))
    except PlanError:
        return 0


def _listed(candidate: Candidate, values: Mapping[str, str]) -> tuple[Setting, ...]:
    """The values that TUNE lists, as settings."""
    if not values or not _names(candidate):
        return ()
    return tuple(
        Setting(name=parameter.name, value=values[parameter.name])
        for parameter in parse(candidate.source.plan).tune
        if parameter.name in values and values[parameter.name] in map(str, parameter.values)
    )


def _names(candidate: Candidate) -> tuple[str, ...]:
    try:
        return tuple(sorted(p.name for p in parse(candidate.source.plan).tune))
    except PlanError:
        return ()
