"""The loop on the real archive: budgets, promotion, failures, resume."""

import asyncio
import dataclasses
from collections.abc import Callable

import pytest

from archive_svc.archive import LocalArchive
from kernel_foundry.domain.admission import Admission
from kernel_foundry.domain.archive import ArchivedEvaluation, RunState
from kernel_foundry.domain.check import Trust
from kernel_foundry.domain.evaluation import Evaluation, EvaluationOutcome
from kernel_foundry.domain.request import (
    EvaluationRequest,
    Proposal,
    ProposalRequest,
)
from kernel_foundry.domain.task import Task
from kernel_foundry.errors import (
    DeviceMemoryError,
    InvalidArgumentError,
    LlmQuotaError,
    LlmUnavailableError,
    ProcessLostError,
    TaskRefusedError,
)
from kernel_foundry.sdk.loop.budget import Budget, StopCause
from kernel_foundry.sdk.loop.progress import (
    AdmissionEvent,
    Event,
    LostCandidateEvent,
    RunResult,
    VerdictEvent,
)
from kernel_foundry.sdk.loop.proposer import REPEATS_BEFORE_EXHAUSTED, UNANSWERED_BEFORE_GIVING_UP
from kernel_foundry.sdk.loop.run_evaluator import UNJUDGED_BEFORE_GIVING_UP
from kernel_foundry.testing.evaluator import FakeEvaluator
from kernel_foundry.testing.generator import FakeGenerator
from tests.domain_values import run_spec
from tests.evolution import RequestLog, evolution_of

SPEC = run_spec(seed=5)


async def _evolve(
    archive: LocalArchive,
    budget: Budget,
    *,
    evaluator: FakeEvaluator | None = None,
    generator: FakeGenerator | None = None,
    events: list[Event] | None = None,
    judging: int = 1,
) -> RunResult:
    run = await archive.create_run(SPEC)
    evolution = evolution_of(
        run,
        archive,
        budget,
        evaluator=evaluator or FakeEvaluator(),
        generator=generator or FakeGenerator(),
        in_flight=max(2, judging),
        judging=judging,
        listener=(events if events is not None else []).append,
    )
    return await evolution.run()


class _BusyEvaluator(FakeEvaluator):
    """Takes many turns for a verdict, as a host with others before us."""

    async def evaluate(self, request: EvaluationRequest) -> Evaluation:
        for _ in range(50):
            await asyncio.sleep(0)
        return await super().evaluate(request)


async def test_no_model_is_asked_for_what_nobody_would_judge(archive: LocalArchive) -> None:
    asked = RequestLog()
    ended = await _evolve(
        archive, Budget(evaluations=12), evaluator=_BusyEvaluator(), generator=asked, judging=3
    )
    judged = {request.selection.sequence for request in asked.requests}
    assert ended.cause is StopCause.EVALUATIONS
    assert len(asked.requests) == len(judged) <= 12


async def test_run_ends_at_its_evaluations_and_has_a_promoted_winner(archive: LocalArchive) -> None:
    events: list[Event] = []
    ended = await _evolve(archive, Budget(evaluations=20), events=events)
    assert ended.cause is StopCause.EVALUATIONS
    assert ended.run.state is RunState.FINISHED
    judged = [e for e in events if isinstance(e, VerdictEvent)]
    assert [e.is_promotion for e in judged[:20]] == [False] * 20
    assert all(e.is_promotion for e in judged[20:])
    assert ended.winner is not None
    assert ended.winner.candidate.digest in {e.candidate.digest for e in judged[20:]}
    assert isinstance(events[0], AdmissionEvent)
    assert events[-1] == ended


async def test_everything_judged_is_archived_once(archive: LocalArchive) -> None:
    events: list[Event] = []
    await _evolve(archive, Budget(evaluations=15), events=events)
    archived = await archive.evaluations("run", limit=1000)
    judged = [e.candidate.digest for e in events if isinstance(e, VerdictEvent)]
    assert judged == [t.candidate.digest for t in archived]
    searched = judged[:15]
    assert len(set(searched)) == 15


async def test_proposals_answer_their_selections_and_promotions_none(archive: LocalArchive) -> None:
    events: list[Event] = []
    await _evolve(archive, Budget(evaluations=12), events=events)
    archived = await archive.evaluations("run", limit=1000)
    promoted = [e.is_promotion for e in events if isinstance(e, VerdictEvent)]
    assert promoted == [t.selection is None for t in archived]
    answered = [t.selection for t in archived if t.selection is not None]
    assert len(set(answered)) == len(answered) == 12


async def test_resume_goes_on_where_the_run_was(archive: LocalArchive) -> None:
    await _evolve(archive, Budget(evaluations=8))
    before = await archive.evaluations("run", limit=1000)
    await _evolve(archive, Budget(evaluations=len(before) + 6))
    after = await archive.evaluations("run", limit=1000)
    assert before == after[: len(before)]
    fresh = [t.candidate.digest for t in after[len(before) : len(before) + 6]]
    assert len(set(fresh) - {t.candidate.digest for t in before}) == 6
    assert list(range(1, len(after) + 1)) == [t.sequence for t in after]


async def test_an_archived_verdict_on_another_task_is_said_so(
    archive: LocalArchive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store may hold what no archive takes; the loop compares times by names of workloads."""
    await _evolve(archive, Budget(evaluations=4))
    evaluations = archive.evaluations

    async def renamed(run: str, *, after: int = 0, limit: int = 100) -> list[ArchivedEvaluation]:
        archived = []
        for one in await evaluations(run, after=after, limit=limit):
            workloads = [dataclasses.replace(w, workload="x") for w in one.evaluation.workloads]
            verdict = dataclasses.replace(one.evaluation, workloads=tuple(workloads))
            archived.append(dataclasses.replace(one, evaluation=verdict))
        return archived

    monkeypatch.setattr(archive, "evaluations", renamed)
    with pytest.raises(InvalidArgumentError, match="the verdict is on workloads x"):
        await _evolve(archive, Budget(evaluations=8))


class _RepeatingGenerator(FakeGenerator):
    async def propose(self, request: ProposalRequest):  # type: ignore[no-untyped-def]
        selection = dataclasses.replace(request.selection, sequence=0)
        return await super().propose(dataclasses.replace(request, selection=selection))


async def test_search_that_only_repeats_itself_ends_as_exhausted(
    archive: LocalArchive, monkeypatch: pytest.MonkeyPatch
) -> None:
    dropped: list[int] = []
    drop = archive.drop_selection

    async def note_and_drop(run: str, selection: int) -> None:
        dropped.append(selection)
        await drop(run, selection)

    monkeypatch.setattr(archive, "drop_selection", note_and_drop)
    ended = await _evolve(archive, Budget(minutes=5), generator=_RepeatingGenerator())
    assert ended.cause is StopCause.EXHAUSTED
    archived = {t.selection for t in await archive.evaluations("run", limit=1000)}
    # Each repeat gave its selection back, and nothing that was answered was given back.
    assert len(set(dropped)) == len(dropped) >= REPEATS_BEFORE_EXHAUSTED
    assert not archived & set(dropped)
    archived = await archive.evaluations("run", limit=1000)
    assert len({t.candidate.digest for t in archived}) == 1


class _PoorGenerator(FakeGenerator):
    def __init__(self, replies: int) -> None:
        super().__init__()
        self.replies = replies

    async def propose(self, request: ProposalRequest):  # type: ignore[no-untyped-def]
        if self.replies == 0:
            raise LlmQuotaError("the budget is used up")
        self.replies -= 1
        return await super().propose(request)


async def test_used_up_quota_ends_the_run_with_what_it_bought(archive: LocalArchive) -> None:
    ended = await _evolve(archive, Budget(minutes=5), generator=_PoorGenerator(4))
    assert ended.cause is StopCause.COST
    archived = await archive.evaluations("run", limit=1000)
    assert len({t.candidate.digest for t in archived}) == 4


async def test_lost_process_surfaces_typed_and_the_run_can_be_resumed(
    archive: LocalArchive,
) -> None:
    class Failing(FakeEvaluator):
        calls = 0

        async def evaluate(self, request: EvaluationRequest):  # type: ignore[no-untyped-def]
            self.calls += 1
            if self.calls == 5:
                raise ProcessLostError("the judge died")
            return await super().evaluate(request)

    with pytest.raises(ProcessLostError, match="judge"):
        await _evolve(archive, Budget(evaluations=12), evaluator=Failing())
    assert (await archive.get_run("run")).state is RunState.INTERRUPTED
    assert len(await archive.evaluations("run", limit=1000)) == 4
    ended = await _evolve(archive, Budget(evaluations=12))
    assert ended.cause is StopCause.EVALUATIONS


async def test_failing_generator_surfaces_typed(archive: LocalArchive) -> None:
    class Broken(FakeGenerator):
        async def propose(self, request: ProposalRequest):  # type: ignore[no-untyped-def]
            raise ProcessLostError("no generator")

    with pytest.raises(ProcessLostError, match="no generator"):
        await _evolve(archive, Budget(evaluations=3), generator=Broken())


async def test_everything_judged_is_reported_to_the_generator(archive: LocalArchive) -> None:
    generator = FakeGenerator()
    await _evolve(archive, Budget(evaluations=12), generator=generator)
    archived = await archive.evaluations("run", limit=1000)
    answers = {t.selection: t for t in archived if t.selection is not None}
    assert len(answers) >= 12
    assert {(r, s) for r, s in generator.reported} == {("run", s) for s in answers}
    for outcome in generator.reported.values():
        assert outcome.evaluation == answers[outcome.selection].evaluation
        assert outcome.candidate == answers[outcome.selection].candidate


class _FlakyGenerator(FakeGenerator):
    """Does not answer every `period`th call."""

    def __init__(self, period: int) -> None:
        super().__init__()
        self.period, self.calls = period, 0

    async def propose(self, request: ProposalRequest):  # type: ignore[no-untyped-def]
        self.calls += 1
        if self.calls % self.period == 0:
            raise LlmUnavailableError("a bad minute")
        return await super().propose(request)


async def test_a_bad_minute_of_a_provider_does_not_end_the_run(
    archive: LocalArchive, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kernel_foundry.sdk.loop.proposer._LONGEST_PAUSE_S", 0.0)
    generator = _FlakyGenerator(period=3)
    ended = await _evolve(archive, Budget(evaluations=20), generator=generator)
    assert ended.cause is StopCause.EVALUATIONS
    assert generator.calls > 20
    archived = await archive.evaluations("run", limit=1000)
    selections = [t.selection for t in archived if t.selection is not None]
    assert len(selections) == len(set(selections))


async def test_a_provider_that_is_down_ends_the_run_with_its_reason(
    archive: LocalArchive, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kernel_foundry.sdk.loop.proposer._LONGEST_PAUSE_S", 0.0)
    generator = _FlakyGenerator(period=1)
    with pytest.raises(LlmUnavailableError, match="a bad minute"):
        await _evolve(archive, Budget(evaluations=20), generator=generator)
    # Two proposals are in flight.
    assert 2 * UNANSWERED_BEFORE_GIVING_UP <= generator.calls <= 2 * UNANSWERED_BEFORE_GIVING_UP + 1
    assert (await archive.get_run("run")).state is RunState.INTERRUPTED


class _StuckGenerator(FakeGenerator):
    """Answers as often as there are islands, and then no more."""

    async def propose(self, request: ProposalRequest) -> Proposal:
        if request.selection.sequence > 3:
            await asyncio.Event().wait()
        return await super().propose(request)


async def test_a_model_that_does_not_answer_holds_up_no_run_whose_time_is_over(
    archive: LocalArchive,
) -> None:
    async with asyncio.timeout(60):
        ended = await _evolve(archive, Budget(minutes=0.3 / 60), generator=_StuckGenerator())
    assert ended.cause is StopCause.MINUTES
    assert ended.run.state is RunState.FINISHED
    assert ended.winner is not None


async def test_refused_task_costs_nothing(archive: LocalArchive) -> None:
    class Refusing(FakeEvaluator):
        async def admit(self, task: Task, device: str = ""):  # type: ignore[no-untyped-def]
            admission = await super().admit(task, device)
            return dataclasses.replace(admission, refusals=("the output is constant",))

    with pytest.raises(TaskRefusedError, match="constant"):
        await _evolve(archive, Budget(evaluations=3), evaluator=Refusing())
    assert (await archive.stats("run")).evaluation_count == 0


class _CountingEvaluator(FakeEvaluator):
    """Counts evaluations at once; the first wait for as many as there are to be."""

    def __init__(self, expected: int) -> None:
        super().__init__()
        self.running = 0
        self.most = 0
        self._expected = expected
        self._full = asyncio.Event()

    async def evaluate(self, request: EvaluationRequest) -> Evaluation:
        self.running += 1
        self.most = max(self.most, self.running)
        if self.running == self._expected:
            self._full.set()
        await self._full.wait()
        self.running -= 1
        return await super().evaluate(request)


async def test_several_evaluations_at_once_keep_to_the_budget(archive: LocalArchive) -> None:
    events: list[Event] = []
    evaluator = _CountingEvaluator(4)
    ended = await _evolve(
        archive, Budget(evaluations=20), evaluator=evaluator, events=events, judging=4
    )
    searched = [e for e in events if isinstance(e, VerdictEvent) and not e.is_promotion]
    assert len(searched) == 20
    assert evaluator.most == 4
    assert ended.cause is StopCause.EVALUATIONS


class ShortOfMemory:
    """Raises in some of an evaluator's evaluations, as a device with too little memory does."""

    def __init__(self, which: Callable[[int], bool]) -> None:
        self._which = which
        self.count = 0

    async def __call__(self) -> None:
        await asyncio.sleep(0)
        self.count += 1
        if self._which(self.count):
            raise DeviceMemoryError("comparing takes more memory than there is", doing="comparing")


async def test_an_evaluation_without_memory_does_not_end_the_run(archive: LocalArchive) -> None:
    events: list[Event] = []
    short = ShortOfMemory(lambda count: count % 3 == 1)

    ended = await _evolve(
        archive, Budget(evaluations=6), evaluator=FakeEvaluator(short), events=events
    )

    archived = [event for event in events if isinstance(event, VerdictEvent)]
    unjudged = [event for event in events if isinstance(event, LostCandidateEvent)]
    assert ended.cause is StopCause.EVALUATIONS
    assert ended.run.state is RunState.FINISHED
    assert len([event for event in archived if not event.is_promotion]) == 6
    assert unjudged
    assert "more memory than there is" in unjudged[0].reason


@pytest.mark.parametrize("judging", [1, 3])
async def test_a_run_that_never_has_memory_ends_with_a_clear_error(
    archive: LocalArchive, judging: int
) -> None:
    events: list[Event] = []
    evaluator = FakeEvaluator(ShortOfMemory(lambda _: True))

    with pytest.raises(DeviceMemoryError, match="candidates in a row could not be judged"):
        await _evolve(
            archive,
            Budget(evaluations=100),
            evaluator=evaluator,
            events=events,
            judging=judging,
        )

    unjudged = [event for event in events if isinstance(event, LostCandidateEvent)]
    assert len(unjudged) == UNJUDGED_BEFORE_GIVING_UP - 1
    assert (await archive.get_run("run")).state is RunState.INTERRUPTED


async def test_a_promotion_without_memory_keeps_the_winner(archive: LocalArchive) -> None:
    events: list[Event] = []
    short = ShortOfMemory(lambda count: count > 4)

    ended = await _evolve(
        archive, Budget(evaluations=4), evaluator=FakeEvaluator(short), events=events
    )

    assert ended.winner is not None
    assert ended.run.state is RunState.FINISHED
    assert ended.winner.evaluation.trust is Trust.SUSPECT
    assert any(isinstance(event, LostCandidateEvent) for event in events)


class _DriftingEvaluator(FakeEvaluator):
    """Its baselines are others at each admission; notes what fitness is to be compared with."""

    def __init__(self, baseline_ns: float) -> None:
        super().__init__()
        self._baseline_ns = baseline_ns
        self.yardsticks_ns: list[tuple[float, ...]] = []

    async def admit(self, task: Task, device: str = "") -> Admission:
        admission = await super().admit(task, device)
        (workload,) = admission.workloads
        (eager,) = workload.baselines
        timing = dataclasses.replace(eager.timing, median_ns=self._baseline_ns)
        eager = dataclasses.replace(eager, timing=timing)
        workload = dataclasses.replace(workload, baselines=(eager,))
        return dataclasses.replace(admission, workloads=(workload,))

    async def evaluate(self, request: EvaluationRequest) -> Evaluation:
        self.yardsticks_ns.append(tuple(y.time_ns for y in request.yardsticks))
        evaluation = await super().evaluate(request)
        held = {y.workload: y.time_ns for y in request.yardsticks}
        results = tuple(
            dataclasses.replace(w, yardstick_ns=held.get(w.workload)) for w in evaluation.workloads
        )
        return dataclasses.replace(evaluation, workloads=results)


async def test_a_resumed_run_keeps_the_yardstick_that_it_began_with(archive: LocalArchive) -> None:
    """Candidates of one run compare, whatever the baselines have become since."""
    first, second = _DriftingEvaluator(1e6), _DriftingEvaluator(3e6)
    await _evolve(archive, Budget(evaluations=4), evaluator=first)
    await _evolve(archive, Budget(evaluations=8), evaluator=second)
    assert set(first.yardsticks_ns) == set(second.yardsticks_ns) == {(1e6,)}


class _Particular(FakeEvaluator):
    """Refuses every third source as a request."""

    count = 0

    async def evaluate(self, request: EvaluationRequest) -> Evaluation:
        self.count += 1
        if self.count % 3 == 0:
            raise InvalidArgumentError("source: too long", field="source")
        return await super().evaluate(request)


async def test_a_source_that_is_no_request_costs_its_candidate_and_not_the_run(
    archive: LocalArchive,
) -> None:
    ended = await _evolve(archive, Budget(evaluations=12), evaluator=_Particular())
    assert ended.cause is StopCause.EVALUATIONS
    assert ended.run.state is RunState.FINISHED
    archived = (await archive.evaluations("run", limit=1000))[:12]
    unread = [t for t in archived if t.evaluation.outcome is EvaluationOutcome.EXTRACTION_FAILED]
    assert len(unread) == 4
    assert "too long" in unread[0].evaluation.findings[0].message


async def test_a_request_that_no_candidate_is_to_blame_for_ends_the_run(
    archive: LocalArchive,
) -> None:
    class Refusing(FakeEvaluator):
        async def evaluate(self, request: EvaluationRequest) -> Evaluation:
            raise InvalidArgumentError("yardsticks: none", field="yardsticks")

    with pytest.raises(InvalidArgumentError, match="yardsticks"):
        await _evolve(archive, Budget(evaluations=4), evaluator=Refusing())


class _Wordy(FakeGenerator):
    """Every other reply holds no candidate."""

    async def propose(self, request: ProposalRequest) -> Proposal:
        proposal = await super().propose(request)
        number = request.selection.sequence
        if number % 2:
            return proposal
        return Proposal(candidate=None, reply=f"thought {number}", failure="there is no block")


async def test_a_reply_without_candidate_is_archived_as_one_that_failed(
    archive: LocalArchive,
) -> None:
    await _evolve(archive, Budget(evaluations=4), generator=_Wordy())
    archived = [
        t for t in await archive.evaluations("run", limit=1000) if not t.evaluation.is_final
    ]
    unread = [t for t in archived if t.evaluation.outcome is EvaluationOutcome.EXTRACTION_FAILED]
    assert len(unread) == 2
    assert {t.candidate.source.device_code for t in unread} <= {f"thought {n}" for n in range(6)}
    assert {t.evaluation.findings[0].message for t in unread} == {"there is no block"}
    assert {t.evaluation.candidate for t in unread} == {t.candidate.digest for t in unread}
