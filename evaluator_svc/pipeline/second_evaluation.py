"""A candidate's verdict: one evaluation, and a second one where the first leaves a doubt.

A suspicion is no proof. A candidate that it falls on is judged once more, in another process on
other inputs; it passes when it passes twice, and the slower measurement counts.
"""

import dataclasses
from collections.abc import Callable

from kernel_foundry.domain.check import Check, CheckKind, CheckResult, Trust
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.domain.finding import Evidence, FindingKind
from kernel_foundry.domain.fitness import distrusted_fitness


def evaluate_until_sure(evaluate: Callable[[], Evaluation]) -> Evaluation:
    """Return a first evaluation, or what two come to where it leaves a doubt.

    Args:
        evaluate: Judges it once, in processes and on inputs of its own.
    """
    first = evaluate()
    if not first.passed or not is_suspect(first):
        return first
    return confirmed(first, evaluate())


def is_suspect(evaluation: Evaluation) -> bool:
    """Return whether anything about a candidate asks for a second measurement."""
    return any(c.result is CheckResult.SUSPECT for c in evaluation.checks) or any(
        f.kind is FindingKind.SUSPICION for f in evaluation.findings
    )


def confirmed(first: Evaluation, second: Evaluation) -> Evaluation:
    """Return the verdict that two evaluations of a suspect come to; the first one passed."""
    if not second.passed:
        note = "it passed in one process and not in another"
        check = _check(CheckResult.FAILED, first, second, note)
        return dataclasses.replace(second, checks=(*second.checks, check))
    slower = min(first, second, key=lambda evaluation: evaluation.fitness)
    check = _check(CheckResult.PASSED, first, second, "the slower measurement counts")
    # What may be hoped for is less, too: the better of two is luck as often as not.
    optimistic = min(first.optimistic_fitness, second.optimistic_fitness)
    # A pause of the host looks like a trick once; what is in the candidate is there twice.
    is_doubtful = is_suspect(second)
    return dataclasses.replace(
        slower,
        fitness=distrusted_fitness(slower.fitness) if is_doubtful else slower.fitness,
        optimistic_fitness=distrusted_fitness(optimistic) if is_doubtful else optimistic,
        checks=(*slower.checks, check),
        trust=Trust.SUSPECT if is_doubtful else Trust.FULL,
    )


def _check(result: CheckResult, first: Evaluation, second: Evaluation, note: str) -> Check:
    times = [
        Evidence(name=f"{which}_speedup", value=evaluation.speedup)
        for which, evaluation in (("first", first), ("second", second))
        if evaluation.speedup is not None
    ]
    return Check(kind=CheckKind.SECOND_MEASUREMENT, result=result, figures=tuple(times), note=note)
