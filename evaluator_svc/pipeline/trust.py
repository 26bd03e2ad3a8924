"""Decides how far a verdict can be trusted: `full`, `suspect` or `degenerate`.

The whole table is in docs/design.md §6; `foreign` is set in `pipeline/foreign/evaluate.py`.

A suspicion is no proof. A suspect is evaluated once more, in another process on other inputs. It
passes if it passes twice, and the slower measurement counts. It is trusted fully if the second
evaluation has no suspicion of any kind. A degenerate task makes every verdict on it `degenerate`.

What makes a candidate suspect is decided elsewhere: by a rule of class SUSPECT (`policy/rules.py`,
made a finding in `policy/finding.py`) or by a measurement whose check is SUSPECT (in folders of
`pipeline`). Without a second measurement at its end, a run also lowers the trust of its best
candidate (`not_measured_again` in `kernel_foundry/sdk/loop/promotion.py`).
"""

import dataclasses
from collections.abc import Callable

from kernel_foundry.domain.check import Check, CheckKind, CheckResult, Trust
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.domain.finding import Figure, FindingKind
from kernel_foundry.domain.fitness import suspect_fitness


def evaluate_and_confirm(
    evaluate: Callable[[], Evaluation], *, is_degenerate: bool = False
) -> Evaluation:
    """Return the verdict on a candidate, which is evaluated twice if the first time is suspect.

    Args:
        evaluate: Evaluates the candidate once, in fresh processes on fresh inputs.
        is_degenerate: Whether a trivial answer passes the task.
    """
    verdict = evaluate()
    if verdict.passed and is_suspect(verdict):
        verdict = confirmed(verdict, evaluate())
    return dataclasses.replace(verdict, trust=Trust.DEGENERATE) if is_degenerate else verdict


def is_suspect(evaluation: Evaluation) -> bool:
    """Return whether an evaluation has a suspicion, or a check that is suspect."""
    return any(c.result is CheckResult.SUSPECT for c in evaluation.checks) or any(
        f.kind is FindingKind.SUSPICION for f in evaluation.findings
    )


def confirmed(first: Evaluation, second: Evaluation) -> Evaluation:
    """Return the verdict on a suspect from two evaluations, of which the first one passed."""
    if not second.passed:
        note = "it passed in one process and not in another"
        check = _check(CheckResult.FAILED, first, second, note)
        return dataclasses.replace(second, checks=(*second.checks, check))
    slower = min(first, second, key=lambda evaluation: evaluation.fitness)
    check = _check(CheckResult.PASSED, first, second, "the slower measurement counts")
    # Taking the better one would reward luck.
    optimistic = min(first.optimistic_fitness, second.optimistic_fitness)
    # A stall can look like cheating in one evaluation; cheating shows in both.
    still_suspect = is_suspect(second)
    return dataclasses.replace(
        slower,
        fitness=suspect_fitness(slower.fitness) if still_suspect else slower.fitness,
        optimistic_fitness=suspect_fitness(optimistic) if still_suspect else optimistic,
        checks=(*slower.checks, check),
        trust=Trust.SUSPECT if still_suspect else Trust.FULL,
    )


def _check(result: CheckResult, first: Evaluation, second: Evaluation, note: str) -> Check:
    times = [
        Figure(name=f"{which}_speedup", value=evaluation.speedup)
        for which, evaluation in (("first", first), ("second", second))
        if evaluation.speedup is not None
    ]
    return Check(kind=CheckKind.SECOND_MEASUREMENT, result=result, figures=tuple(times), note=note)
