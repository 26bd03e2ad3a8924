"""The loop's own sweeps: who is swept, what is archived, what it costs, how the next one starts."""

import dataclasses
from collections.abc import AsyncGenerator

import pytest

from archive_svc.archive import LocalArchive
from kernel_foundry.domain.candidate import Candidate, KernelSource
from kernel_foundry.domain.evaluation import Evaluation, Setting, Timing
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.request import (
    EvaluationLimits,
    EvaluationRequest,
    Proposal,
    ProposalRequest,
)
from kernel_foundry.domain.sweep import (
    Configuration,
    ConfigurationResult,
    SweepRequest,
    best_of,
)
from kernel_foundry.domain.traffic_bound import NEVER
from kernel_foundry.errors import DeadlineExceededError
from kernel_foundry.sdk.loop.budget import Budget, StopCause
from kernel_foundry.sdk.loop.progress import (
    AdmissionEvent,
    Event,
    RunResult,
    SweepEvent,
    VerdictEvent,
)
from kernel_foundry.sdk.loop.sweeping import (
    CONFIGURATIONS_PER_EVALUATION,
    SweepAllowance,
    Sweeper,
    cost_of,
)
from kernel_foundry.testing.evaluator import FakeEvaluator
from kernel_foundry.testing.generator import FakeGenerator
from tests.domain_values import run_spec
from tests.evolution import evolution_of

SPEC = run_spec(seed=3)
PLAN = 'TUNE = {"AA": [1, 2, 3, 4], "BB": [1, 2]}\ndef launch(out):\n    pass'
SPACE = 8


class TunedGenerator(FakeGenerator):
    async def propose(self, request: ProposalRequest) -> Proposal:
        proposal = await super().propose(request)
        assert proposal.candidate is not None
        old = proposal.candidate.source
        source = dataclasses.replace(old, plan=PLAN)
        return dataclasses.replace(
            proposal,
            candidate=dataclasses.replace(proposal.candidate, source=source),
        )


class SpyEvaluator(FakeEvaluator):
    """Fitness follows from the time; remembers what was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.sweeps: list[SweepRequest] = []
        self.fails_in_sweep = 0

    async def evaluate(self, request: EvaluationRequest) -> Evaluation:
        evaluation = await super().evaluate(request)
        assert evaluation.speedup is not None
        fitness = 0.2 + 0.8 * evaluation.speedup / 10
        return dataclasses.replace(evaluation, fitness=fitness, optimistic_fitness=fitness)

    async def sweep(self, request: SweepRequest) -> AsyncGenerator[ConfigurationResult, None]:
        self.sweeps.append(request)
        if len(self.sweeps) == self.fails_in_sweep:
            raise DeadlineExceededError("the judge gave no answer")
        async for result in super().sweep(request):
            yield result


async def _evolve(
    archive: LocalArchive,
    evaluator: SpyEvaluator,
    events: list[Event],
    *,
    evaluations: int = 60,
    generator: FakeGenerator | None = None,
) -> RunResult:
    evolution = evolution_of(
        await archive.create_run(SPEC),
        archive,
        Budget(evaluations=evaluations, stop_at=NEVER),
        evaluator=evaluator,
        generator=generator or TunedGenerator(),
        listener=events.append,
    )
    return await evolution.run()


async def test_better_configuration_is_archived_as_the_candidates_verdict(
    archive: LocalArchive,
) -> None:
    events: list[Event] = []
    await _evolve(archive, SpyEvaluator(), events)
    swept = [e for e in events if isinstance(e, SweepEvent)]
    assert swept
    archived = {
        t.candidate.digest: t.evaluation
        for t in await archive.evaluations("run", limit=1000)
        if t.evaluation.swept_count
    }
    assert archived
    for event in swept:
        best = best_of(event.results)
        assert best is not None
        if event.candidate.digest in archived:
            evaluation = archived[event.candidate.digest]
            assert evaluation.configuration == best.configuration
            assert evaluation.swept_count == len(event.results)


async def test_each_candidate_is_swept_at_most_once(archive: LocalArchive) -> None:
    evaluator = SpyEvaluator()
    await _evolve(archive, evaluator, [])
    digests = [request.source.digest for request in evaluator.sweeps]
    assert len(set(digests)) == len(digests)


async def test_configurations_count_against_the_budget(archive: LocalArchive) -> None:
    events: list[Event] = []
    ended = await _evolve(archive, SpyEvaluator(), events)
    assert ended.cause is StopCause.EVALUATIONS
    archived = [e for e in events if isinstance(e, VerdictEvent)]
    charged = sum(cost_of(len(e.results)) for e in events if isinstance(e, SweepEvent))
    assert charged > 0
    searched = [e for e in archived if not e.is_promotion]
    assert ended.spent.archived == len(archived)
    assert ended.spent.evaluations == len(searched) + charged
    assert 60 <= len(searched) + charged <= 61  # the last sweep's own verdict may exceed it


async def test_little_that_is_left_is_not_swept(archive: LocalArchive) -> None:
    events: list[Event] = []
    await _evolve(archive, SpyEvaluator(), events, evaluations=3)
    assert not any(isinstance(e, SweepEvent) for e in events)
    assert len([e for e in events if isinstance(e, VerdictEvent) and not e.is_promotion]) == 3


async def test_best_parameters_of_the_family_go_first_in_the_next_sweep(
    archive: LocalArchive,
) -> None:
    evaluator = SpyEvaluator()
    events: list[Event] = []
    await _evolve(archive, evaluator, events)
    assert len(evaluator.sweeps) > 1
    better = {
        e.candidate.digest: e.evaluation.configuration
        for e in events
        if isinstance(e, VerdictEvent) and e.evaluation.swept_count
    }
    assert better
    swept = [e.candidate.digest for e in events if isinstance(e, SweepEvent)]
    newest: tuple[Setting, ...] = ()  # the default, which goes first anyway
    for digest, request in zip(swept, evaluator.sweeps, strict=True):
        assert not newest or request.order[-1].settings == newest
        newest = better.get(digest, ())


async def test_winner_is_measured_again_in_its_configuration(archive: LocalArchive) -> None:
    events: list[Event] = []
    ended = await _evolve(archive, SpyEvaluator(), events)
    assert ended.winner is not None
    promoted = [e for e in events if isinstance(e, VerdictEvent) and e.is_promotion]
    assert promoted[-1].evaluation.configuration == ended.winner.evaluation.configuration
    assert ended.winner.evaluation.configuration


async def test_candidates_without_a_space_are_not_swept(archive: LocalArchive) -> None:
    evaluator = SpyEvaluator()
    await _evolve(archive, evaluator, [], evaluations=12, generator=FakeGenerator())
    assert evaluator.sweeps == []


async def test_run_that_died_in_a_sweep_resumes_with_it_and_adds_once(
    archive: LocalArchive,
) -> None:
    evaluator = SpyEvaluator()
    evaluator.fails_in_sweep = 1
    with pytest.raises(DeadlineExceededError, match="judge"):
        await _evolve(archive, evaluator, [])
    before = await archive.evaluations("run", limit=1000)
    resumed = SpyEvaluator()
    events: list[Event] = []
    ended = await _evolve(archive, resumed, events)
    assert resumed.sweeps[0].source == evaluator.sweeps[0].source
    after = await archive.evaluations("run", limit=1000)
    assert after[: len(before)] == before
    swept = [t.candidate.digest for t in after if t.evaluation.swept_count]
    assert len(set(swept)) == len(swept)
    assert ended.cause is StopCause.EVALUATIONS


async def test_resumed_run_remembers_what_sweeps_cost(archive: LocalArchive) -> None:
    first: list[Event] = []
    ended = await _evolve(archive, SpyEvaluator(), first, evaluations=40)
    promoted = [e for e in first if isinstance(e, VerdictEvent) and e.is_promotion]
    archived = await archive.evaluations("run", limit=1000)
    charged = sum(cost_of(t.evaluation.swept_count) for t in archived)
    assert charged > 0
    events: list[Event] = []
    used = len(archived) - len(promoted) + charged
    again = await _evolve(archive, SpyEvaluator(), events, evaluations=used)
    assert (again.spent.evaluations, again.spent.sweep_evaluations) == (used, charged)
    assert [e.spent.archived for e in events if isinstance(e, AdmissionEvent)] == [len(archived)]
    fresh = [e for e in events if isinstance(e, VerdictEvent) and not e.is_promotion]
    assert not fresh, (ended, again)


def test_cost_is_rounded_up() -> None:
    assert [cost_of(n) for n in (0, 1, SPACE, SPACE + 1)] == [0, 1, 1, 2]
    assert CONFIGURATIONS_PER_EVALUATION == SPACE


async def test_plan_that_does_not_parse_has_no_space() -> None:
    evaluator = SpyEvaluator()
    sweeper = Sweeper(evaluator, SPEC, EvaluationLimits())
    tuned = KernelSource(language=Language.SYCL, device_code="// x", plan=PLAN)
    passed = await evaluator.evaluate(EvaluationRequest(task=SPEC.task, device="", source=tuned))
    for plan, is_worth_it in ((PLAN, True), ("not a plan (", False)):
        source = KernelSource(language=Language.SYCL, device_code="// x", plan=plan)
        candidate = Candidate(source=source)
        assert sweeper.is_promising(candidate, passed, passed, is_elite=True) is is_worth_it


async def test_values_that_a_hint_names_are_tried_first() -> None:
    """Those that TUNE lists; whatever else the hint says."""
    hint = "XX=1, try AA=3; CAA=2 AA==4 BB=7"
    evaluator = SpyEvaluator()
    sweeper = Sweeper(evaluator, SPEC, EvaluationLimits(), hint=lambda: hint)
    source = KernelSource(language=Language.SYCL, device_code="// x", plan=PLAN)
    known = await evaluator.evaluate(EvaluationRequest(task=SPEC.task, device="", source=source))
    await sweeper.sweep(
        Candidate(source=source), known, SweepAllowance(configurations=4, seconds=9.0)
    )
    asked = Configuration(settings=(Setting(name="AA", value="3"),))
    assert evaluator.sweeps[0].order == (asked,)


async def test_candidates_compare_by_their_times_whatever_their_baselines() -> None:
    """Baselines that were slow for a moment make nobody look promising, or hopeless."""
    evaluator = SpyEvaluator()
    sweeper = Sweeper(evaluator, SPEC, EvaluationLimits())
    candidate = Candidate(
        source=KernelSource(language=Language.SYCL, device_code="// x", plan=PLAN)
    )
    best = await evaluator.evaluate(
        EvaluationRequest(task=SPEC.task, device="", source=candidate.source)
    )
    slowed = _scaled(best, baselines=10.0)
    assert slowed.speedup == pytest.approx(10 * (best.speedup or 0.0))
    assert sweeper.is_promising(candidate, best, slowed, is_elite=False)
    four_times_slower = _scaled(slowed, times=4.0)
    assert not sweeper.is_promising(candidate, four_times_slower, best, is_elite=True)


def _scaled(evaluation: Evaluation, *, baselines: float = 1.0, times: float = 1.0) -> Evaluation:
    def scaled(timing: Timing, factor: float) -> Timing:
        low, high = (bound * factor for bound in timing.ci95_ns)
        return dataclasses.replace(timing, median_ns=timing.median_ns * factor, ci95_ns=(low, high))

    return dataclasses.replace(
        evaluation,
        workloads=tuple(
            dataclasses.replace(
                w,
                timing=w.timing and scaled(w.timing, times),
                baselines=tuple(
                    dataclasses.replace(b, timing=scaled(b.timing, baselines)) for b in w.baselines
                ),
            )
            for w in evaluation.workloads
        ),
    )
