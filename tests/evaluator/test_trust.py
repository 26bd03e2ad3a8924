"""A suspicion asks for a second measurement; what it says counts."""

import dataclasses
from collections.abc import Callable

import pytest

from evaluator_svc.pipeline.trust import evaluate_and_confirm
from kernel_foundry.domain.check import Check, CheckKind, CheckResult, Trust
from kernel_foundry.domain.evaluation import (
    CompileReport,
    Evaluation,
    EvaluationOutcome,
    WorkloadResult,
)
from kernel_foundry.domain.finding import Finding, FindingKind, Severity
from kernel_foundry.domain.fitness import (
    CORRECT,
    correct_fitness,
    failure_fitness,
    ranked_speedup,
    suspect_fitness,
)
from kernel_foundry.domain.measures import Measures
from tests.domain_values import timing_of

_SUSPECT = Check(kind=CheckKind.PRECISION, result=CheckResult.SUSPECT)
_SUSPICION = Finding(
    kind=FindingKind.SUSPICION, severity=Severity.WARNING, message="unusual", rule="source.clock"
)


def _passed(
    fitness: float, checks: tuple[Check, ...] = (), findings: tuple[Finding, ...] = ()
) -> Evaluation:
    return Evaluation(
        candidate="c",
        task="t",
        device="null:0",
        outcome=EvaluationOutcome.PASSED,
        compile=CompileReport(log="", compile_ns=0.0, cached=True, object_bytes=1),
        workloads=(WorkloadResult(workload="default", timing=timing_of(1e6)),),
        measures=Measures(memory=0, algorithm=0, synchronization=0),
        fitness=fitness,
        optimistic_fitness=fitness + 0.1,
        checks=checks,
        findings=findings,
    )


def _in_turn(*evaluations: Evaluation) -> tuple[Callable[[], Evaluation], list[Evaluation]]:
    """Return a judge that gives these in turn, and what it has not given yet."""
    left = list(evaluations)
    return lambda: left.pop(0), left


def test_nothing_unusual_is_measured_once() -> None:
    """No suspicion, no second process."""
    evaluate, left = _in_turn(_passed(0.6), _passed(0.5))
    assert evaluate_and_confirm(evaluate) == _passed(0.6)
    assert len(left) == 1


def test_the_slower_of_two_counts() -> None:
    """A suspect check asks again; trust is lowered whichever was slower."""
    for first, second in ((0.6, 0.5), (0.5, 0.6)):
        evaluate, left = _in_turn(_passed(first, (_SUSPECT,)), _passed(second, (_SUSPECT,)))
        found = evaluate_and_confirm(evaluate)
        assert not left
        assert found.fitness == suspect_fitness(0.5)
        assert found.optimistic_fitness == suspect_fitness(0.6)
        assert found.trust is Trust.SUSPECT
        assert found.checks[-1].kind is CheckKind.SECOND_MEASUREMENT
        assert found.checks[-1].result is CheckResult.PASSED


def test_a_suspicious_finding_asks_again_too() -> None:
    """Policy has no check of its own result: the finding alone is enough."""
    suspect = _passed(0.6, findings=(_SUSPICION,))
    evaluate, left = _in_turn(suspect, suspect)
    assert evaluate_and_confirm(evaluate).trust is Trust.SUSPECT
    assert not left


def test_what_is_not_seen_again_leaves_trust_as_it_was() -> None:
    """A pause of the host looks like a trick; the slower measurement counts all the same."""
    evaluate, left = _in_turn(_passed(0.6, (_SUSPECT,)), _passed(0.5))
    found = evaluate_and_confirm(evaluate)
    assert not left
    assert found.trust is Trust.FULL
    assert found.fitness == 0.5


def test_failing_the_second_time_is_failing() -> None:
    """What passes in one process and not in another does not pass."""
    failed = dataclasses.replace(_passed(0.1), outcome=EvaluationOutcome.WRONG_RESULT)
    evaluate, _ = _in_turn(_passed(0.6, (_SUSPECT,)), failed)
    found = evaluate_and_confirm(evaluate)
    assert found.outcome is EvaluationOutcome.WRONG_RESULT
    assert found.checks[-1].result is CheckResult.FAILED


def test_a_failed_suspect_is_not_judged_again() -> None:
    failed = dataclasses.replace(_passed(0.1, (_SUSPECT,)), outcome=EvaluationOutcome.WRONG_RESULT)
    evaluate, left = _in_turn(failed, _passed(0.6))
    assert evaluate_and_confirm(evaluate) == failed
    assert len(left) == 1


def test_a_suspect_verdict_is_worth_less_than_any_trusted_one() -> None:
    """However fast it is, and more than any failure; among themselves the faster one leads."""
    worth = [suspect_fitness(correct_fitness(speedup)) for speedup in (1e-6, 1.0, 50.0, 1e9)]
    assert worth == sorted(worth)
    assert worth[-1] < CORRECT < correct_fitness(1e-9)
    failures = [o for o in EvaluationOutcome if o is not EvaluationOutcome.PASSED]
    assert worth[0] > max(map(failure_fitness, failures))


def test_what_ranks_is_shown_as_the_speed_up_it_stands_for() -> None:
    assert ranked_speedup(correct_fitness(2.5)) == pytest.approx(2.5)
    assert ranked_speedup(suspect_fitness(correct_fitness(2.5))) is None
    assert ranked_speedup(failure_fitness(EvaluationOutcome.WRONG_RESULT)) is None
