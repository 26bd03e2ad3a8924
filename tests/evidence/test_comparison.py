"""What agrees between a record and a second evaluation, line by line.

Times, yardsticks and fitness are in `test_comparison_of_times.py`.
"""

import asyncio
import dataclasses

import pytest

from kernel_foundry.domain.check import Check, CheckKind, CheckResult, Trust
from kernel_foundry.domain.evaluation import Evaluation, EvaluationOutcome, WorkloadResult
from kernel_foundry.domain.finding import Figure, Finding, FindingKind, Severity
from kernel_foundry.evidence.record import EvidenceRecord
from kernel_foundry.sdk.verification.compare import compare
from kernel_foundry.sdk.verification.statement import Agreement, holds
from kernel_foundry.sdk.verification.verify import (
    MOST_EVALUATIONS,
    request_again,
    verification,
    verify_by_judging,
)
from tests.evidence.changed_verdicts import (
    VerdictsInTurn,
    changed,
    claims_of,
    lines_of,
    slower,
    with_error,
    with_facts,
    with_first,
)
from tests.evidence.conftest import CHECKS, TASK, evaluate

AGREES, DIFFERS, OTHER = Agreement.AGREES, Agreement.DIFFERS, Agreement.NOT_COMPARABLE
INCONCLUSIVE = Agreement.INCONCLUSIVE


def test_the_same_again_agrees_in_every_line(record: EvidenceRecord) -> None:
    lines = lines_of(record, evaluate())
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
        evidence=with_facts(),
    )
    lines = lines_of(record, again)
    assert lines["outcome"].agreement is DIFFERS
    assert lines["outcome"].note == "all wrong"
    assert lines["errors on n=8"].found == "not reached"
    assert "time of n=8" not in lines


def test_other_numbers_differ_only_where_they_must_be_the_same(record: EvidenceRecord) -> None:
    """To the bit on the same device with the same software; within the tolerance elsewhere."""
    other = with_first(evaluate(), with_error(1e-9))
    assert lines_of(record, other)["errors on n=8"].agreement is DIFFERS
    elsewhere = dataclasses.replace(other, evidence=with_facts(torch="2.14"))
    lines = lines_of(record, elsewhere)
    assert lines["errors on n=8"].agreement is AGREES
    assert lines["errors on n=8"].note == "within the tolerance"
    assert lines["environment"].agreement is OTHER
    assert (lines["environment"].recorded, lines["environment"].found) == (
        "torch: 2.13",
        "torch: 2.14",
    )
    wrong = with_first(elsewhere, with_error(1.0, mismatch_count=1))
    assert lines_of(record, wrong)["errors on n=8"].agreement is DIFFERS


def test_results_that_vary_from_run_to_run_need_not_be_the_same(record: EvidenceRecord) -> None:
    again = with_first(evaluate(), with_error(1e-9, bitwise_reproducible=False))
    assert lines_of(record, again)["errors on n=8"].agreement is AGREES


def test_the_error_distribution_is_compared(record: EvidenceRecord) -> None:
    def rougher(result: WorkloadResult) -> WorkloadResult:
        audit = dataclasses.replace(result.correctness.precision, rms_error=1e-4)
        return dataclasses.replace(
            result, correctness=dataclasses.replace(result.correctness, precision=audit)
        )

    assert lines_of(record, with_first(evaluate(), rougher))["errors on n=8"].agreement is DIFFERS


def test_what_was_not_run_is_not_confirmed_and_what_differs_is_not_partial(
    record: EvidenceRecord,
) -> None:
    """With --no-run a record agrees when it is what was signed for: nothing else was asked."""
    key = record.attestation.public_key
    unrun = verification(record, None, own_key=key)
    assert claims_of(unrun) == (True, False, False, False)
    elsewhere = evaluate(evidence=with_facts(device="another"))
    wrong = verification(record, with_first(elsewhere, with_error(1.0, mismatch_count=1)))
    assert claims_of(wrong) == (False, False, False, False)
    slow = verification(record, with_first(evaluate(), slower(9.0)))
    assert claims_of(slow) == (False, True, False, False)


def test_a_check_that_comes_out_otherwise_differs(record: EvidenceRecord) -> None:
    failed = dataclasses.replace(CHECKS[1], result=CheckResult.FAILED, note="not twice the same")
    lines = lines_of(record, evaluate(checks=(CHECKS[0], failed)))
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
    line = lines_of(record, evaluate(checks=checks))["check comparison on n=8"]
    assert line.agreement is DIFFERS
    assert line.note == "the same seeds give other figures: largest_error"
    assert (line.recorded, line.found) == (
        "passed (largest_error 1.25e-07)",
        "passed (largest_error 2.5e-07)",
    )
    elsewhere = evaluate(checks=checks, evidence=with_facts(compiler="another"))
    assert lines_of(record, elsewhere)["check comparison on n=8"].agreement is AGREES


def test_what_is_asked_again_is_what_was_judged(record: EvidenceRecord) -> None:
    request = request_again(record)
    assert request.task == record.task
    assert request.seeds == record.attestation.seeds
    assert request.device == "fake"
    assert request_again(record, "cuda:1").device == "cuda:1"


def test_a_suspicion_that_the_record_leaves_out_differs(record: EvidenceRecord) -> None:
    """Leaving a check out is no way to have it pass."""
    silent = dataclasses.replace(
        record, evaluation=dataclasses.replace(record.evaluation, checks=CHECKS[:1])
    )
    suspicious = Check(kind=CheckKind.PRECISION, result=CheckResult.SUSPECT, note="13 bits")
    lines = lines_of(silent, evaluate(checks=(*CHECKS, suspicious)))
    assert lines["check precision"].agreement is DIFFERS
    assert (lines["check precision"].recorded, lines["check precision"].note) == ("none", "13 bits")
    assert lines["check clock"].agreement is DIFFERS
    assert lines["check determinism on n=8"].agreement is DIFFERS
    assert lines["check determinism on n=8"].note == "the record leaves this check out"
    # An older version makes fewer of them; a check that is suspect now still counts.
    older = evaluate(checks=(*CHECKS, suspicious), evidence=with_facts(**{"Kernel Foundry": "2"}))
    lines = lines_of(silent, older)
    assert lines["check precision"].agreement is DIFFERS
    assert lines["check clock"].agreement is OTHER
    assert lines["check determinism on n=8"].agreement is OTHER


def test_a_suspicion_on_another_workload_than_those_told_differs(record: EvidenceRecord) -> None:
    passed = Check(kind=CheckKind.PRECISION, result=CheckResult.PASSED, workload="n=8")
    suspect = dataclasses.replace(passed, result=CheckResult.SUSPECT, workload="n=9")
    told = changed(record, checks=(*CHECKS, passed))
    lines = lines_of(told, evaluate(checks=(*CHECKS, passed, suspect)))
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
    assert holds(compare(changed(record, checks=more), evaluate()))
    wrong = dataclasses.replace(ranges, result=CheckResult.FAILED)
    assert not holds(compare(record, evaluate(checks=(*CHECKS, wrong))))


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
    line = lines_of(changed(record, trust=recorded), evaluate(trust=found, checks=(*CHECKS, odd)))[
        "trust"
    ]
    assert (line.agreement, line.recorded, line.found) == (agreement, recorded.value, found.value)


def test_a_suspicion_by_times_alone_is_looked_at_again(record: EvidenceRecord) -> None:
    """A pause of the host is in one minute; a forged trust is never borne out."""
    suspect = evaluate(trust=Trust.SUSPECT)  # by its clock
    assert lines_of(record, suspect)["trust in the times"].agreement is DIFFERS
    known = record.attestation.public_key
    twice = VerdictsInTurn(suspect, evaluate())
    assert asyncio.run(verify_by_judging(record, twice, own_key=known)).agrees
    never = VerdictsInTurn(*[suspect] * MOST_EVALUATIONS)
    assert not asyncio.run(verify_by_judging(record, never)).agrees
    elsewhere = evaluate(trust=Trust.SUSPECT, evidence=with_facts(device="another"))
    assert verification(record, elsewhere).is_partial


def test_a_workload_that_the_record_leaves_out_differs(record: EvidenceRecord) -> None:
    lines = lines_of(changed(record, workloads=record.evaluation.workloads[:1]), evaluate())
    assert lines["errors on n=9"].agreement is DIFFERS
    assert lines["errors on n=9"].note == "the record leaves this workload out"


def test_an_arithmetic_that_the_bits_do_not_show_differs(record: EvidenceRecord) -> None:
    told = changed(record, arithmetic="float32")
    narrow = evaluate(arithmetic="float16")
    assert lines_of(told, narrow)["arithmetic"].agreement is DIFFERS
    assert "arithmetic" not in lines_of(told, evaluate(arithmetic="float32"))
    elsewhere = evaluate(arithmetic="float16", evidence=with_facts(compiler="another"))
    assert "arithmetic" not in lines_of(told, elsewhere)


def test_sanitizers_are_asked_for_where_the_record_has_them(record: EvidenceRecord) -> None:
    """Records of promotions have; a host without sanitizers says nothing against one."""
    assert not request_again(record).sanitize
    clean = Check(kind=CheckKind.SANITIZER, result=CheckResult.PASSED, workload="n=8")
    told = changed(record, checks=(*CHECKS, clean))
    assert request_again(told).sanitize
    skipped = dataclasses.replace(clean, result=CheckResult.SKIPPED)
    line = lines_of(told, evaluate(checks=(*CHECKS, skipped)))["check sanitizer on n=8"]
    assert line.agreement is OTHER


def test_a_strangers_seeds_are_not_believed(record: EvidenceRecord) -> None:
    """It may be written for them: right on the record's seeds, and on no others."""
    wrong = evaluate(outcome=EvaluationOutcome.WRONG_RESULT)
    for fresh, agreement in ((evaluate(), AGREES), (wrong, DIFFERS)):
        verified = asyncio.run(verify_by_judging(record, VerdictsInTurn(evaluate(), fresh)))
        lines = {s.subject: s for s in verified.statements}
        assert lines["seeds"].agreement is OTHER
        assert lines["fresh seeds"].agreement is agreement
        assert verified.agrees is (agreement is AGREES)
    known = record.attestation.public_key
    verified = asyncio.run(verify_by_judging(record, VerdictsInTurn(evaluate()), own_key=known))
    assert not {"seeds", "fresh seeds"} & {s.subject for s in verified.statements}
