"""A note on narrow formats stands only as long as nothing shows how exact results are."""

import pytest

from evaluator_svc.pipeline.evaluation_draft import EvaluationDraft
from evaluator_svc.policy import narrow_findings
from kernel_foundry.domain.check import Check, CheckKind, CheckResult


@pytest.mark.parametrize(
    ("results", "is_told"),
    [
        ((), True),
        ((CheckResult.SKIPPED,), True),
        ((CheckResult.PASSED, CheckResult.SUSPECT), True),
        ((CheckResult.PASSED,), False),
        ((CheckResult.PASSED, CheckResult.SKIPPED), False),
    ],
)
def test_a_note_on_narrow_formats_is_dropped_where_errors_pass(
    results: tuple[CheckResult, ...], *, is_told: bool
) -> None:
    draft = EvaluationDraft(task="t", candidate="c", device="cuda:0", baselines_ns={})
    draft.add_findings(narrow_findings(("float16",), ()))
    draft.add_checks(
        tuple(Check(kind=CheckKind.PRECISION, result=result, workload="w") for result in results)
    )

    assert bool(draft.built().findings) == is_told
