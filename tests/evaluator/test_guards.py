"""Writes around tensors and into inputs are found, wherever a candidate thinks it is."""

import pytest

from kernel_foundry.domain.check import CheckKind, CheckResult
from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.finding import FindingKind

pytestmark = pytest.mark.sycl

_STORE = "if (i < count) out[i] = sycl::fmax(x[i], 0.0f) * weight[i % cols];"


def _result(evaluation, kind):
    return [check.result for check in evaluation.checks if check.kind is kind]


def test_an_honest_candidate_leaves_every_guard_alone(judged):
    """The check is there for every workload, with how many bytes it looked at."""
    evaluation = judged(judged.right)
    assert evaluation.passed, evaluation.findings
    checks = [c for c in evaluation.checks if c.kind is CheckKind.GUARDS_INTACT]
    assert len(checks) == len(evaluation.workloads)
    assert all(c.result is CheckResult.PASSED for c in checks)
    assert all(c.figures[0].value >= 256 for c in checks)


@pytest.mark.parametrize(
    "stray",
    ["if (i == 0) out[count] = 1.0f;", "if (i == 0) out[-1] = 1.0f;"],
    ids=["behind the output", "before it"],
)
def test_a_write_around_a_tensor_is_found(judged, stray):
    """One element is enough."""
    assert _STORE in judged.right
    evaluation = judged(judged.right.replace(_STORE, f"{_STORE} {stray}"))
    assert evaluation.outcome is EvaluationOutcome.WRONG_RESULT
    assert FindingKind.STRAY_WRITE in [f.kind for f in evaluation.findings]
    assert CheckResult.FAILED in _result(evaluation, CheckKind.GUARDS_INTACT)


def test_a_write_into_timed_inputs_is_found(judged):
    """The kernel tells the timed buffers, which begin a page, from those of the first runs."""
    text = judged.right.replace("const float* __restrict__ x", "float* __restrict__ x").replace(
        _STORE, f"{_STORE} if (i == 0 && ((size_t)out & 4095) == 0) x[count / 2] = -1.0f;"
    )
    evaluation = judged(text)
    assert evaluation.outcome is EvaluationOutcome.WRONG_RESULT
    assert FindingKind.INPUT_MODIFIED in [f.kind for f in evaluation.findings]
