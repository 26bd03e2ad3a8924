"""Sizes that a task does not name: silently wrong there is wrong, made for others is not."""

import dataclasses

import pytest

from evaluator_svc.sizes.generated_workloads import SizeGroup, beside_largest
from kernel_foundry.domain.check import CheckKind, CheckResult
from kernel_foundry.domain.evaluation import Evaluation, EvaluationOutcome
from kernel_foundry.domain.task import Task, Workload

_BY_FOURS = """```sycl
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void scaled_relu(const float* __restrict__ x, const float* __restrict__ weight,
                 float* __restrict__ out, int count, int cols) {{
  {claim}
  const int i = syclext::this_work_item::get_nd_item<1>().get_global_id(0);
  if (i < count) out[i] = sycl::fmax(x[i], 0.0f) * weight[i % cols];
}}
```

```python
{head}
def launch(x, weight, out):
    {require}
    rows, cols = x.shape
    count = rows * cols // 4 * 4
    scaled_relu[cdiv(count, 64), 64](x, weight, out, count, cols)
```
"""


def _compared(evaluation: Evaluation) -> dict[str, CheckResult]:
    checks = [c for c in evaluation.checks if c.kind is CheckKind.COMPARISON]
    return {check.workload: check.result for check in checks}


def _beside(task: Task) -> str:
    groups = [SizeGroup(keys=("ROWS",), value=64), SizeGroup(keys=("COLS",), value=96)]
    return beside_largest(task, groups)[0].name


@pytest.fixture
def task(judged):
    return dataclasses.replace(judged.task, workloads=(Workload(name="default"),))


def test_a_kernel_for_all_sizes_is_compared_on_generated_ones(judged, task):
    evaluation = judged(judged.right, task=task)
    assert evaluation.passed, evaluation.findings
    assert _compared(evaluation) == {
        "default": CheckResult.PASSED,
        "ROWS=31,COLS=61": CheckResult.PASSED,
        "ROWS=128,COLS=160": CheckResult.PASSED,
        _beside(task): CheckResult.PASSED,
    }
    generated = [w for w in evaluation.workloads if w.workload != "default"]
    assert all(w.held_out and w.timing is None for w in generated)


def test_a_kernel_that_leaves_a_rest_out_is_wrong(judged, task):
    text = _BY_FOURS.format(claim="", head="", require="")
    evaluation = judged(text, task=task)
    assert evaluation.outcome is EvaluationOutcome.WRONG_RESULT
    assert "never written" in evaluation.findings[0].message


@pytest.mark.parametrize(
    ("claim", "head", "require"),
    [
        pytest.param("", "", "require(x.numel() % 4 == 0)", id="the plan says so"),
        pytest.param(
            'static_assert(DIM % 4 == 0, "made for fours");',
            'CONST = {"DIM": "x.shape[1]"}',
            "",
            id="its kernels do not compile",
        ),
    ],
)
def test_a_kernel_that_says_what_it_is_made_for_passes(judged, task, claim, head, require):
    evaluation = judged(_BY_FOURS.format(claim=claim, head=head, require=require), task=task)
    assert evaluation.passed, evaluation.findings
    assert _compared(evaluation) == {
        "default": CheckResult.PASSED,
        "ROWS=31,COLS=61": CheckResult.SKIPPED,
        "ROWS=128,COLS=160": CheckResult.PASSED,
        _beside(task): CheckResult.SKIPPED,
    }


def test_a_plan_that_takes_no_generated_size_is_known_for_the_tasks_own_alone(judged, task):
    require = "require(x.numel() == 64 * 96)"
    evaluation = judged(_BY_FOURS.format(claim="", head="", require=require), task=task)
    assert evaluation.passed, evaluation.findings
    notes = [c.note for c in evaluation.checks if c.kind is CheckKind.COMPARISON]
    assert sum("no sizes but the task's own" in note for note in notes) == 1


def test_declared_sizes_are_none_to_refuse(judged):
    """A held-out workload that the task names binds every candidate."""
    text = _BY_FOURS.format(claim="", head="", require="require(x.numel() % 4 == 0)")
    assert judged(text).outcome is EvaluationOutcome.PLAN_ERROR


def test_seeds_of_generated_workloads_can_be_given(judged, task):
    """As a record does that is verified."""
    first = judged(judged.right, task=task)
    seeds = first.attestation.seeds
    assert {s.workload for s in seeds} == {w.workload for w in first.workloads}
    again = judged(judged.right, task=task, seeds=seeds)
    assert again.passed, again.findings
