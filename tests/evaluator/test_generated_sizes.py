"""Sizes that a task does not name: silently wrong there is wrong, made for others is not."""

import asyncio
import dataclasses

import pytest

from evaluator_svc.sizes.generated_workloads import SizeGroup, beside_largest
from evaluator_svc.sizes.long_axes import long_axis_workloads
from kernel_foundry.domain.check import CheckKind, CheckResult
from kernel_foundry.domain.evaluation import Evaluation, EvaluationOutcome
from kernel_foundry.domain.finding import FindingKind
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


_GROUPS = (SizeGroup(keys=("ROWS",), value=64), SizeGroup(keys=("COLS",), value=96))


def _beside(task: Task) -> str:
    return beside_largest(task, _GROUPS)[0].name


def _long(task: Task) -> list[Workload]:
    return [ways[0] for ways in long_axis_workloads(task, _GROUPS)]


def _taken(workload: Workload, *, by_columns: bool) -> CheckResult:
    """Return whether a candidate made for fours passes: of columns, or of all elements."""
    rows, cols = (size.value for size in workload.sizes)
    is_taken = (cols if by_columns else rows * cols) % 4 == 0
    return CheckResult.PASSED if is_taken else CheckResult.SKIPPED


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
        **{workload.name: CheckResult.PASSED for workload in _long(task)},
    }
    generated = [w for w in evaluation.workloads if w.workload != "default"]
    assert all(w.held_out and w.timing is None for w in generated)


def test_tiny_sizes_have_a_wider_tolerance_and_no_audit(judged, task):
    """Of rows of two elements some are alike: what cancels there is inexact in honest kernels."""
    admission = asyncio.run(judged.evaluator.admit(task, judged.device))
    factors = {w.workload: w.tolerance_factor for w in admission.workloads if not w.is_spare}
    wider = {name for name, factor in factors.items() if factor > 1.0}
    assert wider == {workload.name for workload in _long(task)}
    checks = judged(judged.right, task=task).checks
    audited = {c.workload for c in checks if c.kind is CheckKind.PRECISION}
    assert "ROWS=31,COLS=61" in audited
    assert not audited & wider


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
        **{w.name: _taken(w, by_columns=bool(head)) for w in _long(task)},
    }


def test_a_plan_that_takes_no_generated_size_is_known_for_the_tasks_own_alone(judged, task):
    require = "require(x.numel() == 64 * 96)"
    evaluation = judged(_BY_FOURS.format(claim="", head="", require=require), task=task)
    assert evaluation.passed, evaluation.findings
    notes = [c.note for c in evaluation.checks if c.kind is CheckKind.COMPARISON]
    assert sum("no sizes but the task's own" in note for note in notes) == 1


_WHOLE_BLOCKS = "require(rows % 32 == 0 and cols % 96 == 0)"


@pytest.mark.parametrize(
    ("head", "count", "outcome"),
    [
        pytest.param("", "rows * cols", EvaluationOutcome.PASSED, id="right"),
        pytest.param(
            "",
            "max(rows * cols // 6144 * 6144, 64)",
            EvaluationOutcome.WRONG_RESULT,
            id="for 64 rows",
        ),
        pytest.param(
            'CONST = {"DIM": "x.shape[0]"}',
            "max(rows * cols // 6144 * 6144, 64)",
            EvaluationOutcome.WRONG_RESULT,
            id="for 64 rows, built anew",
        ),
    ],
)
def test_a_plan_that_asks_for_more_than_generated_sizes_have_meets_another(
    judged, task, head, count, outcome
):
    text = (
        _BY_FOURS.format(claim="", head=head, require="")
        .replace("rows * cols // 4 * 4", count)
        .replace("rows, cols = x.shape", f"rows, cols = x.shape\n    {_WHOLE_BLOCKS}")
    )
    evaluation = judged(text, task=task)
    assert evaluation.outcome is outcome, evaluation.findings
    compared = _compared(evaluation)
    assert compared["ROWS=32,COLS=96"] is (
        CheckResult.PASSED if evaluation.passed else CheckResult.FAILED
    )
    assert "" not in compared


_FLAT_TAIL = """```sycl
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void scaled_relu(const float* __restrict__ x, const float* __restrict__ weight,
                 float* __restrict__ out, int count, int cols) {
  const int i = syclext::this_work_item::get_nd_item<1>().get_global_id(0), col = i % cols;
  if (i >= count) return;
  const float v = sycl::fmax(x[i], 0.0f);
  out[i] = (col < cols / 16 * 16 ? v : sycl::fmin(v, 9.0f)) * weight[col];
}
```

```python
def launch(x, weight, out):
    rows, cols = x.shape
    scaled_relu[cdiv(rows * cols, 64), 64](x, weight, out, rows * cols, cols)
```
"""


def test_unusual_values_are_tried_where_a_size_is_odd(judged, task):
    """All columns of the task's own sizes are in whole sixteens."""
    evaluation = judged(_FLAT_TAIL, task=task)
    assert evaluation.outcome is EvaluationOutcome.WRONG_RESULT
    finding = evaluation.findings[0]
    assert (finding.kind, "ROWS=31,COLS=61" in finding.message) == (FindingKind.VALUE_RANGE, True)
    assert _compared(evaluation)["ROWS=31,COLS=61"] is CheckResult.PASSED


def test_unusual_values_are_tried_beyond_what_is_timed(judged, task):
    """In rows of one draw: where columns are more than 96 nothing is above 20."""
    text = _BY_FOURS.format(claim="const bool is_long = cols > 96;", head="", require="")
    text = text.replace("count = rows * cols // 4 * 4", "count = rows * cols")
    evaluation = judged(
        text.replace("(x[i], 0.0f)", "(is_long && x[i] > 20 ? 20 : x[i], 0.0f)"), task=task
    )
    assert evaluation.outcome is EvaluationOutcome.WRONG_RESULT
    finding = evaluation.findings[0]
    assert (finding.kind, "ROWS=128,COLS=160" in finding.message) == (FindingKind.VALUE_RANGE, True)


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
