"""A sample of the project's cases, one for each outcome, is judged as `kfoundry selftest` does."""

from collections.abc import Callable, Iterable

import pytest

from evaluator_svc.evaluator import LocalEvaluator
from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.language import Language
from kernel_foundry.sdk.selftest.case import Case, CaseState
from kernel_foundry.sdk.selftest.case_folder import own_cases
from kernel_foundry.sdk.selftest.run_cases import run_cases

pytestmark = pytest.mark.sycl

NEED_TIME_TO_END = (EvaluationOutcome.TIMEOUT,)
"""Their cases run until a limit of seconds ends them."""


def _sample(cases: Iterable[Case]) -> list[Case]:
    """The first case of each outcome, on a task that is admitted for another one where possible."""
    sample: dict[EvaluationOutcome, Case] = {}
    by_outcome: dict[EvaluationOutcome, list[Case]] = {}
    for case in cases:
        if case.language is Language.SYCL and not case.expectation.gain_denied:
            by_outcome.setdefault(case.expectation.outcomes[0], []).append(case)
    for outcome, candidates in by_outcome.items():
        admitted = {case.task.name for case in sample.values()}
        sample[outcome] = min(candidates, key=lambda case: case.task.name not in admitted)
    return [case for outcome, case in sample.items() if outcome not in NEED_TIME_TO_END]


async def test_one_case_of_each_outcome_is_judged_as_expected(
    local_evaluator: Callable[[str], LocalEvaluator],
) -> None:
    sample = _sample(own_cases())
    assert {case.expectation.outcomes[0] for case in sample} >= {
        EvaluationOutcome.PASSED,
        EvaluationOutcome.REJECTED,
        EvaluationOutcome.WRONG_RESULT,
        EvaluationOutcome.NONDETERMINISTIC,
        EvaluationOutcome.CRASHED,
    }
    results = await run_cases(local_evaluator("sycl"), sample, {Language.SYCL: "sycl:0"})
    unexpected = {r.case.name: r.detail for r in results if r.state is not CaseState.AS_EXPECTED}
    assert unexpected == {}
