"""Verdicts and records that differ in one thing, and what a comparison says of them."""

import dataclasses

from kernel_foundry.domain.evaluation import Evaluation, Fact, WorkloadResult
from kernel_foundry.domain.request import EvaluationRequest
from kernel_foundry.evidence.record import EvidenceRecord
from kernel_foundry.sdk.verification.compare import compare
from kernel_foundry.sdk.verification.statement import Statement
from kernel_foundry.sdk.verification.verify import Verification
from tests.evidence.conftest import FACTS


def lines_of(record: EvidenceRecord, again: Evaluation) -> dict[str, Statement]:
    """Return the statements of a comparison, by subject."""
    return {s.subject: s for s in compare(record, again)}


def with_facts(**changes: str) -> tuple[Fact, ...]:
    return tuple(Fact(name=n, value=v) for n, v in (FACTS | changes).items())


def with_first(again: Evaluation, change) -> Evaluation:
    """Return an evaluation whose first workload's result is changed."""
    first, *rest = again.workloads
    return dataclasses.replace(again, workloads=(change(first), *rest))


def slower(factor: float):
    """Return a change that multiplies a result's time."""

    def change(result: WorkloadResult) -> WorkloadResult:
        timing = dataclasses.replace(
            result.timing,
            median_ns=factor * result.timing.median_ns,
            ci95_ns=tuple(factor * bound for bound in result.timing.ci95_ns),
        )
        return dataclasses.replace(result, timing=timing)

    return change


def with_error(value: float, **changes: object):
    """Return a change of a result's largest error."""

    def change(result: WorkloadResult) -> WorkloadResult:
        correctness = dataclasses.replace(result.correctness, max_abs_error=value, **changes)
        return dataclasses.replace(result, correctness=correctness)

    return change


def claims_of(verified: Verification) -> tuple[bool, bool, bool, bool]:
    """Return what a verification confirms: agreement, numbers, times; and whether in part."""
    confirmed = (verified.numbers_confirmed, verified.times_confirmed)
    return (verified.agrees, *confirmed, verified.is_partial)


class VerdictsInTurn:
    """Gives one verdict after the other."""

    def __init__(self, *verdicts: Evaluation) -> None:
        self.verdicts = list(verdicts)

    async def evaluate(self, _request: EvaluationRequest) -> Evaluation:
        return self.verdicts.pop(0)


def changed(record: EvidenceRecord, **changes: object) -> EvidenceRecord:
    """Return a record whose evaluation has other fields."""
    return dataclasses.replace(record, evaluation=dataclasses.replace(record.evaluation, **changes))
