"""What agrees between a record and a second evaluation, line by line."""

import asyncio
import dataclasses

import pytest

from kernel_foundry.domain.check import Check, CheckKind, CheckResult, Trust
from kernel_foundry.domain.evaluation import Evaluation, EvaluationOutcome, Fact, WorkloadResult
from kernel_foundry.domain.finding import Figure, Finding, FindingKind, Severity
from kernel_foundry.domain.fitness import suspect_fitness
from kernel_foundry.domain.median import median_interval
from kernel_foundry.domain.request import EvaluationRequest
from kernel_foundry.evidence.record import EvidenceRecord
from kernel_foundry.sdk.verification.compare import compare
from kernel_foundry.sdk.verification.statement import Agreement, Statement, holds
from kernel_foundry.sdk.verification.verify import (
    MOST_EVALUATIONS,
    Verification,
    judged_again,
    request_again,
    verification,
)
from tests.evidence.conftest import CHECKS, FACTS, TASK, evaluate

AGREES, DIFFERS, OTHER = Agreement.AGREES, Agreement.DIFFERS, Agreement.NOT_COMPARABLE
INCONCLUSIVE = Agreement.INCONCLUSIVE


def _lines(record: EvidenceRecord, again: Evaluation) -> dict[str, Statement]:
    return {s.subject: s for s in compare(record, again)}


def _with_facts(**changes: str) -> tuple[Fact, ...]:
    return tuple(Fact(name=n, value=v) for n, v in (FACTS | changes).items())


def _with_first(again: Evaluation, change) -> Evaluation:
    first, *rest = again.workloads
    return dataclasses.replace(again, workloads=(change(first), *rest))


def _slower(factor: float):
    def change(result: WorkloadResult) -> WorkloadResult:
        timing = dataclasses.replace(
            result.timing,
            median_ns=factor * result.timing.median_ns,
            ci95_ns=tuple(factor * bound for bound in result.timing.ci95_ns),
        )
        return dataclasses.replace(result, timing=timing)

    return change


def _error(value: float, **changes: object):
    def change(result: WorkloadResult) -> WorkloadResult:
        correctness = dataclasses.replace(result.correctness, max_abs_error=value, **changes)
        return dataclasses.replace(result, correctness=correctness)

    return change


def test_the_same_again_agrees_in_every_line(record: EvidenceRecord) -> None:
    lines = _lines(record, evaluate())
    assert {s.agreement for s in lines.values()} == {AGREES}
    assert set(lines) == {
        "outcome", "environment", "trust", "check comparison on n=8", "check determinism on n=8",
        "check clock", "errors on n=8", "errors on n=9", "time of n=8", "speed-up",
    }  # fmt: skip
    assert lines["errors on n=8"].note == "to the bit"


def test_another_outcome_is_told_with_its_reason(record: EvidenceRecord) -> None:
    finding = Finding(kind=FindingKind.MISMATCH, severity=Severity.ERROR, message="all wrong\nx")
    again = Evaluation(
        candidate=record.source.digest,
        task=TASK.digest,
        device="fake:0",
        outcome=EvaluationOutcome.WRONG_RESULT,
        findings=(finding,),
        evidence=_with_facts(),
    )
    lines = _lines(record, again)
    assert lines["outcome"].agreement is DIFFERS
    assert lines["outcome"].note == "all wrong"
    assert lines["errors on n=8"].found == "not reached"
    assert "time of n=8" not in lines


def test_other_numbers_differ_only_where_they_must_be_the_same(record: EvidenceRecord) -> None:
    """To the bit on the same device with the same software; within the tolerance elsewhere."""
    other = _with_first(evaluate(), _error(1e-9))
    assert _lines(record, other)["errors on n=8"].agreement is DIFFERS
    elsewhere = dataclasses.replace(other, evidence=_with_facts(torch="2.14"))
    lines = _lines(record, elsewhere)
    assert lines["errors on n=8"].agreement is AGREES
    assert lines["errors on n=8"].note == "within the tolerance"
    assert lines["environment"].agreement is OTHER
    assert (lines["environment"].recorded, lines["environment"].found) == (
        "torch: 2.13",
        "torch: 2.14",
    )
    wrong = _with_first(elsewhere, _error(1.0, mismatch_count=1))
    assert _lines(record, wrong)["errors on n=8"].agreement is DIFFERS


def test_results_that_vary_from_run_to_run_need_not_be_the_same(record: EvidenceRecord) -> None:
    again = _with_first(evaluate(), _error(1e-9, bitwise_reproducible=False))
    assert _lines(record, again)["errors on n=8"].agreement is AGREES


def test_the_error_distribution_is_compared(record: EvidenceRecord) -> None:
    def rougher(result: WorkloadResult) -> WorkloadResult:
        audit = dataclasses.replace(result.correctness.precision, rms_error=1e-4)
        return dataclasses.replace(
            result, correctness=dataclasses.replace(result.correctness, precision=audit)
        )

    assert _lines(record, _with_first(evaluate(), rougher))["errors on n=8"].agreement is DIFFERS


@pytest.mark.parametrize(
    ("factor", "agreement"), [(1.0, AGREES), (1.4, AGREES), (0.7, AGREES), (2.0, DIFFERS)]
)
def test_times_agree_within_what_a_busy_host_moves_them(
    record: EvidenceRecord, factor: float, agreement: Agreement
) -> None:
    lines = _lines(record, _with_first(evaluate(), _slower(factor)))
    assert lines["time of n=8"].agreement is agreement
    assert lines["speed-up"].agreement is agreement
    assert f"{factor:.3f} times as long" in lines["time of n=8"].note


def _with_timing_of_first(evaluation: Evaluation) -> Evaluation:
    first, second = evaluation.workloads
    return dataclasses.replace(
        evaluation, workloads=(first, dataclasses.replace(second, timing=first.timing))
    )


def test_times_of_another_device_are_not_compared(record: EvidenceRecord) -> None:
    again = _with_first(evaluate(evidence=_with_facts(device="another")), _slower(9.0))
    lines = _lines(record, again)
    assert (lines["time of n=8"].agreement, lines["speed-up"].agreement) == (OTHER, OTHER)
    assert "not confirmed: another device" in lines["speed-up"].note


@pytest.mark.parametrize(
    ("changes", "is_confirmed"),
    [
        ({}, True),
        ({"torch": "2.14"}, True),
        ({"device": "another"}, False),
        ({"threads": "9"}, False),
    ],
)
def test_times_that_no_device_at_hand_can_bear_out_are_not_confirmed(
    record: EvidenceRecord, changes: dict[str, str], is_confirmed: bool
) -> None:
    """Whoever names another device in a record of his own may claim any time."""
    verified = verification(record, evaluate(evidence=_with_facts(**changes)))
    assert _claims(verified) == (is_confirmed, True, is_confirmed, not is_confirmed)


def _claims(verified: Verification) -> tuple[bool, bool, bool, bool]:
    confirmed = (verified.numbers_confirmed, verified.times_confirmed)
    return (verified.agrees, *confirmed, verified.is_partial)


def test_what_was_not_run_is_not_confirmed_and_what_differs_is_not_partial(
    record: EvidenceRecord,
) -> None:
    """With --no-run a record agrees when it is what was signed for: nothing else was asked."""
    key = record.attestation.public_key
    unrun = verification(record, None, own_key=key)
    assert _claims(unrun) == (True, False, False, False)
    elsewhere = evaluate(evidence=_with_facts(device="another"))
    wrong = verification(record, _with_first(elsewhere, _error(1.0, mismatch_count=1)))
    assert _claims(wrong) == (False, False, False, False)
    slow = verification(record, _with_first(evaluate(), _slower(9.0)))
    assert _claims(slow) == (False, True, False, False)


def test_a_time_that_nobody_takes_differs(record: EvidenceRecord) -> None:
    """Such as one of a held-out workload."""
    held_out = _with_timing_of_first(record.evaluation)
    lines = _lines(dataclasses.replace(record, evaluation=held_out), evaluate())
    assert (lines["time of n=9"].agreement, lines["time of n=9"].found) == (DIFFERS, "not timed")


def test_a_check_that_comes_out_otherwise_differs(record: EvidenceRecord) -> None:
    failed = dataclasses.replace(CHECKS[1], result=CheckResult.FAILED, note="not twice the same")
    lines = _lines(record, evaluate(checks=(CHECKS[0], failed)))
    assert lines["check determinism on n=8"].agreement is DIFFERS
    assert lines["check determinism on n=8"].note == "not twice the same"
    # What was odd about a time need not be odd again; the check itself was left out here.
    assert lines["check clock"].agreement is OTHER


def test_checks_of_one_kind_are_told_apart(record: EvidenceRecord) -> None:
    """Value ranges by their distribution, others by their order."""
    results = {"large": CheckResult.PASSED, "zeros": CheckResult.SKIPPED}
    ranges = [
        Check(kind=CheckKind.VALUE_RANGE, result=result, note=f"{name}: as it happens")
        for name, result in results.items()
    ]
    policies = [Check(kind=CheckKind.OBJECT_POLICY, result=r) for r in results.values()]
    two = dataclasses.replace(record.evaluation, checks=(*ranges, *policies))
    again = evaluate(checks=(*reversed(ranges), *reversed(policies)))
    lines = [
        (s.subject, s.recorded, s.found)
        for s in compare(dataclasses.replace(record, evaluation=two), again)
        if s.subject.startswith("check")
    ]
    assert lines == [
        ("check value range (large)", "passed", "passed"),
        ("check value range (zeros)", "skipped", "skipped"),
        ("check object policy", "passed", "skipped"),
        ("check object policy", "skipped", "passed"),
    ]


def test_a_check_that_is_made_less_often_is_compared_with_the_worst_of_its_sort(
    record: EvidenceRecord,
) -> None:
    """Timed outputs are looked at after each block of samples, and blocks depend on the noise."""
    once = Check(kind=CheckKind.TIMED_OUTPUTS, result=CheckResult.PASSED, workload="n=8")
    twice = dataclasses.replace(record.evaluation, checks=(once, once))
    recorded = dataclasses.replace(record, evaluation=twice)
    assert {s.agreement for s in compare(recorded, evaluate(checks=(once,)))} == {AGREES}
    failed = dataclasses.replace(once, result=CheckResult.FAILED)
    results = [s.found for s in compare(recorded, evaluate(checks=(failed,)))]
    assert results.count("failed") == 2


def test_figures_that_the_seeds_decide_are_compared(record: EvidenceRecord) -> None:
    """To the bit, and only where nothing else could have changed them."""
    figures = (Figure(name="largest_error", value=2.5e-7),)
    checks = (dataclasses.replace(CHECKS[0], figures=figures), *CHECKS[1:])
    line = _lines(record, evaluate(checks=checks))["check comparison on n=8"]
    assert line.agreement is DIFFERS
    assert line.note == "the same seeds give other figures: largest_error"
    assert (line.recorded, line.found) == (
        "passed (largest_error 1.25e-07)",
        "passed (largest_error 2.5e-07)",
    )
    elsewhere = evaluate(checks=checks, evidence=_with_facts(compiler="another"))
    assert _lines(record, elsewhere)["check comparison on n=8"].agreement is AGREES


def test_wide_intervals_of_now_neither_agree_nor_differ(record: EvidenceRecord) -> None:
    """A busy host's say little: nothing against a record, and nothing for it."""

    def noisy(result: WorkloadResult) -> WorkloadResult:
        slow = _slower(4.0)(result)
        timing = dataclasses.replace(slow.timing, ci95_ns=(1.0, 2 * slow.timing.median_ns))
        return dataclasses.replace(slow, timing=timing)

    lines = _lines(record, _with_first(evaluate(), noisy))
    assert lines["time of n=8"].agreement is INCONCLUSIVE
    assert lines["speed-up"].agreement is INCONCLUSIVE


def test_what_is_asked_again_is_what_was_judged(record: EvidenceRecord) -> None:
    request = request_again(record)
    assert request.task == record.task
    assert request.seeds == record.attestation.seeds
    assert request.device == "fake"
    assert request_again(record, "cuda:1").device == "cuda:1"


class _Evaluators:
    """Gives one verdict after another."""

    def __init__(self, *verdicts: Evaluation) -> None:
        self.verdicts = list(verdicts)

    async def evaluate(self, _request: EvaluationRequest) -> Evaluation:
        return self.verdicts.pop(0)


def test_a_time_that_differs_is_taken_again(record: EvidenceRecord) -> None:
    """A busy moment says nothing against a record; a claim that never comes true is."""
    slow = _with_first(evaluate(), _slower(3.0))
    quiet = _Evaluators(slow, evaluate(), slow)
    known = record.attestation.public_key
    assert asyncio.run(judged_again(record, quiet, own_key=known)).agrees
    assert len(quiet.verdicts) == 1
    busy = _Evaluators(*[_with_first(evaluate(), _widened)] * MOST_EVALUATIONS, evaluate())
    verified = asyncio.run(judged_again(record, busy, own_key=known))
    assert (verified.is_inconclusive, verified.is_partial, verified.agrees) == (True, True, False)
    assert len(busy.verdicts) == 1
    never = _Evaluators(*[slow] * MOST_EVALUATIONS, evaluate())
    assert not asyncio.run(judged_again(record, never)).agrees
    wrong = _Evaluators(_with_first(slow, _error(1.0, mismatch_count=3)), evaluate())
    assert not asyncio.run(judged_again(record, wrong)).agrees
    assert len(wrong.verdicts) == 1


def _widened(result: WorkloadResult) -> WorkloadResult:
    low, _high = result.timing.ci95_ns
    timing = dataclasses.replace(result.timing, median_ns=7.0 * low, ci95_ns=(low, 8.0 * low))
    return dataclasses.replace(result, timing=timing)


def _hoped_for(result: WorkloadResult) -> WorkloadResult:
    """Return a measurement whose median is a tenth of the truth, which its interval reaches."""
    if result.timing is None:
        return result
    true_ns = result.timing.median_ns
    samples = (true_ns / 10.0,) * 12 + (true_ns,) * 10
    median_ns, ci95_ns = median_interval(samples)
    timing = dataclasses.replace(
        result.timing, samples_ns=samples, median_ns=median_ns, ci95_ns=ci95_ns
    )
    return dataclasses.replace(result, timing=timing)


def test_a_wide_interval_in_the_record_vouches_for_no_claim(record: EvidenceRecord) -> None:
    """Whoever makes a record up chooses its samples; what was measured now is one's own."""
    claimed = _with_first(record.evaluation, _hoped_for)
    forged = dataclasses.replace(record, evaluation=claimed)
    first = claimed.workloads[0].timing
    assert first.ci95_ns[1] >= 9.0 * first.median_ns
    lines = _lines(forged, evaluate())
    assert (lines["time of n=8"].agreement, lines["speed-up"].agreement) == (DIFFERS, DIFFERS)


def test_no_speed_up_agrees_with_none(record: EvidenceRecord) -> None:
    """A workload without a baseline has none, then and now."""

    def alone(result: WorkloadResult) -> WorkloadResult:
        return dataclasses.replace(result, baselines=())

    without = dataclasses.replace(record, evaluation=_with_first(record.evaluation, alone))
    assert _lines(without, _with_first(evaluate(), alone))["speed-up"].agreement is AGREES
    assert _lines(without, evaluate())["speed-up"].agreement is DIFFERS


def test_a_wide_interval_of_now_is_no_reason_to_differ(record: EvidenceRecord) -> None:
    """A host that is busy while it judges again; nor is a record from a busy one."""
    busy = _with_first(evaluate(), _widened)
    lines = _lines(record, busy)
    inconclusive = (INCONCLUSIVE, INCONCLUSIVE)
    assert (lines["time of n=8"].agreement, lines["speed-up"].agreement) == inconclusive
    from_busy = dataclasses.replace(record, evaluation=_with_first(record.evaluation, _widened))
    lines = _lines(from_busy, evaluate())
    assert (lines["time of n=8"].agreement, lines["speed-up"].agreement) == inconclusive


def test_a_suspicion_that_the_record_leaves_out_differs(record: EvidenceRecord) -> None:
    """Leaving a check out is no way to have it pass."""
    silent = dataclasses.replace(
        record, evaluation=dataclasses.replace(record.evaluation, checks=CHECKS[:1])
    )
    suspicious = Check(kind=CheckKind.PRECISION, result=CheckResult.SUSPECT, note="13 bits")
    lines = _lines(silent, evaluate(checks=(*CHECKS, suspicious)))
    assert lines["check precision"].agreement is DIFFERS
    assert (lines["check precision"].recorded, lines["check precision"].note) == ("none", "13 bits")
    assert lines["check clock"].agreement is DIFFERS
    assert lines["check determinism on n=8"].agreement is DIFFERS
    assert lines["check determinism on n=8"].note == "the record leaves this check out"
    # An older version makes fewer of them; a check that is suspect now still counts.
    older = evaluate(checks=(*CHECKS, suspicious), evidence=_with_facts(**{"Kernel Foundry": "2"}))
    lines = _lines(silent, older)
    assert lines["check precision"].agreement is DIFFERS
    assert lines["check clock"].agreement is OTHER
    assert lines["check determinism on n=8"].agreement is OTHER


def test_a_suspicion_on_another_workload_than_those_told_differs(record: EvidenceRecord) -> None:
    passed = Check(kind=CheckKind.PRECISION, result=CheckResult.PASSED, workload="n=8")
    suspect = dataclasses.replace(passed, result=CheckResult.SUSPECT, workload="n=9")
    told = _changed(record, checks=(*CHECKS, passed))
    lines = _lines(told, evaluate(checks=(*CHECKS, passed, suspect)))
    assert lines["check precision on n=8"].agreement is AGREES
    assert lines["check precision on n=9"].agreement is DIFFERS
    # And where it is one more of a sort that is told.
    twice = dataclasses.replace(suspect, workload="n=8")
    differing = [
        (s.subject, s.found)
        for s in compare(told, evaluate(checks=(*CHECKS, passed, twice)))
        if s.agreement is DIFFERS
    ]
    assert differing == [("check precision on n=8", "suspect")]


def test_checks_that_depend_on_time_may_be_left_out(record: EvidenceRecord) -> None:
    """By either side: a second measurement is for suspects, ranges are for as long as allowed."""
    second = Check(kind=CheckKind.SECOND_MEASUREMENT, result=CheckResult.PASSED)
    ranges = Check(
        kind=CheckKind.VALUE_RANGE, result=CheckResult.PASSED, workload="n=8", note="large: fits"
    )
    more = (*CHECKS, second, ranges)
    assert holds(compare(record, evaluate(checks=more)))
    assert holds(compare(_changed(record, checks=more), evaluate()))
    wrong = dataclasses.replace(ranges, result=CheckResult.FAILED)
    assert not holds(compare(record, evaluate(checks=(*CHECKS, wrong))))


def _changed(record: EvidenceRecord, **changes: object) -> EvidenceRecord:
    return dataclasses.replace(record, evaluation=dataclasses.replace(record.evaluation, **changes))


@pytest.mark.parametrize(
    ("recorded", "found", "agreement"),
    [
        (Trust.FULL, Trust.FULL, AGREES),
        (Trust.SUSPECT, Trust.FULL, AGREES),
        (Trust.DEGENERATE, Trust.DEGENERATE, AGREES),
        (Trust.FULL, Trust.SUSPECT, DIFFERS),
        (Trust.FULL, Trust.DEGENERATE, DIFFERS),
        (Trust.SUSPECT, Trust.DEGENERATE, DIFFERS),
    ],
)
def test_a_record_claims_no_more_trust_than_the_candidate_gets(
    record: EvidenceRecord, recorded: Trust, found: Trust, agreement: Agreement
) -> None:
    odd = Check(kind=CheckKind.OBJECT_POLICY, result=CheckResult.SUSPECT)
    line = _lines(_changed(record, trust=recorded), evaluate(trust=found, checks=(*CHECKS, odd)))[
        "trust"
    ]
    assert (line.agreement, line.recorded, line.found) == (agreement, recorded.value, found.value)


def test_a_suspicion_by_times_alone_is_looked_at_again(record: EvidenceRecord) -> None:
    """A pause of the host is in one minute; a forged trust is never borne out."""
    suspect = evaluate(trust=Trust.SUSPECT)  # by its clock
    assert _lines(record, suspect)["trust in the times"].agreement is DIFFERS
    known = record.attestation.public_key
    twice = _Evaluators(suspect, evaluate())
    assert asyncio.run(judged_again(record, twice, own_key=known)).agrees
    never = _Evaluators(*[suspect] * MOST_EVALUATIONS)
    assert not asyncio.run(judged_again(record, never)).agrees
    elsewhere = evaluate(trust=Trust.SUSPECT, evidence=_with_facts(device="another"))
    assert verification(record, elsewhere).is_partial


def test_a_workload_that_the_record_leaves_out_differs(record: EvidenceRecord) -> None:
    lines = _lines(_changed(record, workloads=record.evaluation.workloads[:1]), evaluate())
    assert lines["errors on n=9"].agreement is DIFFERS
    assert lines["errors on n=9"].note == "the record leaves this workload out"


def _with_yardstick(evaluation: Evaluation) -> Evaluation:
    changes = {"yardstick_ns": 1e6}
    first, *rest = evaluation.workloads
    workloads = (dataclasses.replace(first, **changes), *rest)
    return dataclasses.replace(evaluation, workloads=workloads)


def test_a_fitness_that_does_not_follow_from_the_times_differs(record: EvidenceRecord) -> None:
    again = _with_yardstick(evaluate())
    told = dataclasses.replace(record, evaluation=_with_yardstick(record.evaluation))
    assert "fitness" not in _lines(told, again)
    for changes in ({"fitness": 99.0}, {"optimistic_fitness": 99.0}, {"trust": Trust.SUSPECT}):
        assert _lines(_changed(told, **changes), again)["fitness"].agreement is DIFFERS
    as_suspect = suspect_fitness(again.fitness)
    suspect = _changed(told, trust=Trust.SUSPECT, fitness=as_suspect, optimistic_fitness=as_suspect)
    assert "fitness" not in _lines(suspect, again)
    assert _lines(record, again)["fitness"].found == "no yardstick"


def test_an_arithmetic_that_the_bits_do_not_show_differs(record: EvidenceRecord) -> None:
    told = _changed(record, arithmetic="float32")
    narrow = evaluate(arithmetic="float16")
    assert _lines(told, narrow)["arithmetic"].agreement is DIFFERS
    assert "arithmetic" not in _lines(told, evaluate(arithmetic="float32"))
    elsewhere = evaluate(arithmetic="float16", evidence=_with_facts(compiler="another"))
    assert "arithmetic" not in _lines(told, elsewhere)


def test_a_slowed_eager_baseline_differs(record: EvidenceRecord) -> None:
    def with_eager(factor: float):
        def change(result: WorkloadResult) -> WorkloadResult:
            fast = result.baselines[0]
            eager = dataclasses.replace(
                fast,
                name="eager",
                timing=dataclasses.replace(
                    fast.timing,
                    median_ns=factor * fast.timing.median_ns,
                    ci95_ns=tuple(factor * bound for bound in fast.timing.ci95_ns),
                ),
            )
            other = dataclasses.replace(fast, name="torch.compile")
            return dataclasses.replace(result, baselines=(other, eager))

        return change

    again = _with_first(evaluate(), with_eager(2.0))
    for factor, agreement in ((2.0, AGREES), (1000.0, DIFFERS)):
        changed = _with_first(record.evaluation, with_eager(factor))
        lines = _lines(dataclasses.replace(record, evaluation=changed), again)
        assert lines["speed-up"].agreement is AGREES
        assert lines["speed-up over eager"].agreement is agreement


def test_sanitizers_are_asked_for_where_the_record_has_them(record: EvidenceRecord) -> None:
    """Records of promotions have; a host without sanitizers says nothing against one."""
    assert not request_again(record).sanitize
    clean = Check(kind=CheckKind.SANITIZER, result=CheckResult.PASSED, workload="n=8")
    told = _changed(record, checks=(*CHECKS, clean))
    assert request_again(told).sanitize
    skipped = dataclasses.replace(clean, result=CheckResult.SKIPPED)
    line = _lines(told, evaluate(checks=(*CHECKS, skipped)))["check sanitizer on n=8"]
    assert line.agreement is OTHER


def test_a_yardstick_that_was_given_is_named(record: EvidenceRecord) -> None:
    """Whoever asks for a verdict chooses what fitness is compared with; it is signed as theirs."""

    def lines(*, given: bool) -> dict[str, Statement]:
        first, *rest = record.evaluation.workloads
        first = dataclasses.replace(first, yardstick_ns=1e9, yardstick_given=given)
        told = _changed(record, workloads=(first, *rest))
        return {line.subject: line for line in verification(told, None).statements}

    assert "yardstick" not in lines(given=False)
    line = lines(given=True)["yardstick"]
    assert line.agreement is Agreement.NOT_COMPARABLE
    assert "1e+09 ns" in line.recorded


def test_a_strangers_seeds_are_not_believed(record: EvidenceRecord) -> None:
    """It may be written for them: right on the record's seeds, and on no others."""
    wrong = evaluate(outcome=EvaluationOutcome.WRONG_RESULT)
    for fresh, agreement in ((evaluate(), AGREES), (wrong, DIFFERS)):
        verified = asyncio.run(judged_again(record, _Evaluators(evaluate(), fresh)))
        lines = {s.subject: s for s in verified.statements}
        assert lines["seeds"].agreement is OTHER
        assert lines["fresh seeds"].agreement is agreement
        assert verified.agrees is (agreement is AGREES)
    known = record.attestation.public_key
    verified = asyncio.run(judged_again(record, _Evaluators(evaluate()), own_key=known))
    assert not {"seeds", "fresh seeds"} & {s.subject for s in verified.statements}
