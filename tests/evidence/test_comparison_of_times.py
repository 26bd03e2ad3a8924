"""Which times and figures of speed of a record a second evaluation bears out."""

import asyncio
import dataclasses

import pytest

from kernel_foundry.domain.check import Trust
from kernel_foundry.domain.evaluation import Evaluation, WorkloadResult
from kernel_foundry.domain.fitness import suspect_fitness
from kernel_foundry.domain.median import median_interval
from kernel_foundry.evidence.record import EvidenceRecord
from kernel_foundry.sdk.verification.statement import Agreement, Statement
from kernel_foundry.sdk.verification.verify import MOST_EVALUATIONS, verification, verify_by_judging
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
from tests.evidence.conftest import evaluate

AGREES, DIFFERS, OTHER = Agreement.AGREES, Agreement.DIFFERS, Agreement.NOT_COMPARABLE
INCONCLUSIVE = Agreement.INCONCLUSIVE


@pytest.mark.parametrize(
    ("factor", "agreement"), [(1.0, AGREES), (1.4, AGREES), (0.7, AGREES), (2.0, DIFFERS)]
)
def test_times_agree_within_what_a_busy_host_moves_them(
    record: EvidenceRecord, factor: float, agreement: Agreement
) -> None:
    lines = lines_of(record, with_first(evaluate(), slower(factor)))
    assert lines["time of n=8"].agreement is agreement
    assert lines["speed-up"].agreement is agreement
    assert f"{factor:.3f} times as long" in lines["time of n=8"].note


def _with_timing_of_first(evaluation: Evaluation) -> Evaluation:
    first, second = evaluation.workloads
    return dataclasses.replace(
        evaluation, workloads=(first, dataclasses.replace(second, timing=first.timing))
    )


def test_times_of_another_device_are_not_compared(record: EvidenceRecord) -> None:
    again = with_first(evaluate(evidence=with_facts(device="another")), slower(9.0))
    lines = lines_of(record, again)
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
    verified = verification(record, evaluate(evidence=with_facts(**changes)))
    assert claims_of(verified) == (is_confirmed, True, is_confirmed, not is_confirmed)


def test_a_time_that_nobody_takes_differs(record: EvidenceRecord) -> None:
    held_out = _with_timing_of_first(record.evaluation)
    lines = lines_of(dataclasses.replace(record, evaluation=held_out), evaluate())
    assert (lines["time of n=9"].agreement, lines["time of n=9"].found) == (DIFFERS, "not timed")


def test_wide_intervals_of_now_neither_agree_nor_differ(record: EvidenceRecord) -> None:
    """A busy host's say little: nothing against a record, and nothing for it."""

    def noisy(result: WorkloadResult) -> WorkloadResult:
        slow = slower(4.0)(result)
        timing = dataclasses.replace(slow.timing, ci95_ns=(1.0, 2 * slow.timing.median_ns))
        return dataclasses.replace(slow, timing=timing)

    lines = lines_of(record, with_first(evaluate(), noisy))
    assert lines["time of n=8"].agreement is INCONCLUSIVE
    assert lines["speed-up"].agreement is INCONCLUSIVE


def test_a_time_that_differs_is_taken_again(record: EvidenceRecord) -> None:
    """A busy moment says nothing against a record; a claim that never comes true is."""
    slow = with_first(evaluate(), slower(3.0))
    quiet = VerdictsInTurn(slow, evaluate(), slow)
    known = record.attestation.public_key
    assert asyncio.run(verify_by_judging(record, quiet, own_key=known)).agrees
    assert len(quiet.verdicts) == 1
    busy = VerdictsInTurn(*[with_first(evaluate(), _widened)] * MOST_EVALUATIONS, evaluate())
    verified = asyncio.run(verify_by_judging(record, busy, own_key=known))
    assert (verified.is_inconclusive, verified.is_partial, verified.agrees) == (True, True, False)
    assert len(busy.verdicts) == 1
    never = VerdictsInTurn(*[slow] * MOST_EVALUATIONS, evaluate())
    assert not asyncio.run(verify_by_judging(record, never)).agrees
    wrong = VerdictsInTurn(with_first(slow, with_error(1.0, mismatch_count=3)), evaluate())
    assert not asyncio.run(verify_by_judging(record, wrong)).agrees
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
    claimed = with_first(record.evaluation, _hoped_for)
    forged = dataclasses.replace(record, evaluation=claimed)
    first = claimed.workloads[0].timing
    assert first.ci95_ns[1] >= 9.0 * first.median_ns
    lines = lines_of(forged, evaluate())
    assert (lines["time of n=8"].agreement, lines["speed-up"].agreement) == (DIFFERS, DIFFERS)


def test_no_speed_up_agrees_with_none(record: EvidenceRecord) -> None:
    def alone(result: WorkloadResult) -> WorkloadResult:
        return dataclasses.replace(result, baselines=())

    without = dataclasses.replace(record, evaluation=with_first(record.evaluation, alone))
    assert lines_of(without, with_first(evaluate(), alone))["speed-up"].agreement is AGREES
    assert lines_of(without, evaluate())["speed-up"].agreement is DIFFERS


def test_a_wide_interval_of_now_is_no_reason_to_differ(record: EvidenceRecord) -> None:
    """A host that is busy while it judges again; nor is a record from a busy one."""
    busy = with_first(evaluate(), _widened)
    lines = lines_of(record, busy)
    inconclusive = (INCONCLUSIVE, INCONCLUSIVE)
    assert (lines["time of n=8"].agreement, lines["speed-up"].agreement) == inconclusive
    from_busy = dataclasses.replace(record, evaluation=with_first(record.evaluation, _widened))
    lines = lines_of(from_busy, evaluate())
    assert (lines["time of n=8"].agreement, lines["speed-up"].agreement) == inconclusive


def _with_yardstick(evaluation: Evaluation) -> Evaluation:
    changes = {"yardstick_ns": 1e6}
    first, *rest = evaluation.workloads
    workloads = (dataclasses.replace(first, **changes), *rest)
    return dataclasses.replace(evaluation, workloads=workloads)


def test_a_fitness_that_does_not_follow_from_the_times_differs(record: EvidenceRecord) -> None:
    again = _with_yardstick(evaluate())
    told = dataclasses.replace(record, evaluation=_with_yardstick(record.evaluation))
    assert "fitness" not in lines_of(told, again)
    for changes in ({"fitness": 99.0}, {"optimistic_fitness": 99.0}, {"trust": Trust.SUSPECT}):
        assert lines_of(changed(told, **changes), again)["fitness"].agreement is DIFFERS
    as_suspect = suspect_fitness(again.fitness)
    suspect = changed(told, trust=Trust.SUSPECT, fitness=as_suspect, optimistic_fitness=as_suspect)
    assert "fitness" not in lines_of(suspect, again)
    assert lines_of(record, again)["fitness"].found == "no yardstick"


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

    again = with_first(evaluate(), with_eager(2.0))
    for factor, agreement in ((2.0, AGREES), (1000.0, DIFFERS)):
        changed = with_first(record.evaluation, with_eager(factor))
        lines = lines_of(dataclasses.replace(record, evaluation=changed), again)
        assert lines["speed-up"].agreement is AGREES
        assert lines["speed-up over eager"].agreement is agreement


def test_a_yardstick_that_was_given_is_named(record: EvidenceRecord) -> None:
    """Whoever asks for a verdict chooses what fitness is compared with; it is signed as theirs."""

    def lines(*, given: bool) -> dict[str, Statement]:
        first, *rest = record.evaluation.workloads
        first = dataclasses.replace(first, yardstick_ns=1e9, yardstick_given=given)
        told = changed(record, workloads=(first, *rest))
        return {line.subject: line for line in verification(told, None).statements}

    assert "yardstick" not in lines(given=False)
    line = lines(given=True)["yardstick"]
    assert line.agreement is Agreement.NOT_COMPARABLE
    assert line.recorded.endswith(" 1 s")
