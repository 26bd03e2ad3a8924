"""Real verdicts by the task's check alone: the last of several largest values is as right."""

from evaluator_svc.messages.locked import CandidateFailure
from evaluator_svc.pipeline.correctness.generated_sizes import GeneratedTrials
from evaluator_svc.pipeline.evaluation_draft import EvaluationDraft
from kernel_foundry.domain.admission import WorkloadAdmission
from kernel_foundry.domain.check import Check, CheckKind, CheckResult, Trust
from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.task import Task, Workload
from tests.domain_values import workload_admission

_REFERENCE = """
import torch
from torch import nn

ROWS = 96
COLS = 64


class Model(nn.Module):
    def forward(self, x):
        return x.argmax(-1)


def get_inputs():
    return [torch.randint(0, 5, (ROWS, COLS)).float()]


def is_a_largest(inputs, expected, actual):
    values, places = inputs[0], actual[0]
    if not bool(((places >= 0) & (places < values.shape[-1])).all()):
        return "a place is out of range"
    found = values.gather(-1, places[:, None])[:, 0]
    return bool(found.equal(values.amax(-1))) or "a value is not the largest of its row"
"""
_TASK = Task(
    name="largest",
    reference=_REFERENCE,
    workloads=(Workload(name="default"),),
    check="is_a_largest",
    compare=False,
)
_LAST = """```sycl
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void last_of_largest(const float* __restrict__ x, int64_t* __restrict__ out, int rows, int cols) {
  const int row = syclext::this_work_item::get_nd_item<1>().get_global_id(0);
  if (row >= rows) return;
  int best = 0;
  for (int i = 1; i < cols - LEFT_OUT; ++i)
    if (x[row * cols + i] >= x[row * cols + best]) best = i;
  out[row] = best;
}
```

```python
TUNE = {"LEFT_OUT": [0]}

def launch(x, out):
    rows, cols = x.shape
    last_of_largest[cdiv(rows, 32), 32](x, out, rows, cols)
```
"""


def test_an_answer_that_the_reference_does_not_give_passes(judged) -> None:
    evaluation = judged(_LAST, task=_TASK)
    assert evaluation.passed, evaluation.findings
    assert evaluation.trust is Trust.FULL
    own = {c.kind: c for c in evaluation.checks if c.workload == "default"}
    assert own[CheckKind.COMPARISON].result is CheckResult.SKIPPED
    assert own[CheckKind.PRECISION].result is CheckResult.SKIPPED
    for kind in (CheckKind.TASK_CHECK, CheckKind.TIMED_OUTPUTS, CheckKind.DATA_FLOW):
        assert own[kind].result is CheckResult.PASSED
    differing = {f.name: f.value for f in own[CheckKind.COMPARISON].figures}["differing_elements"]
    assert differing > 0
    ranges = {c.result for c in evaluation.checks if c.kind is CheckKind.VALUE_RANGE}
    assert CheckResult.PASSED in ranges
    assert CheckResult.FAILED not in ranges
    elsewhere = [c for c in evaluation.checks if c.kind is CheckKind.TASK_CHECK]
    assert len(elsewhere) > 1  # sizes that were generated


def test_a_wrong_answer_is_refused_with_the_checks_words(judged) -> None:
    text = _LAST.replace("[0]}", "[7]}")
    evaluation = judged(text, task=_TASK)
    assert evaluation.outcome is EvaluationOutcome.WRONG_RESULT
    assert "is_a_largest() refuses the outputs: a value is not the largest" in (
        evaluation.findings[0].message
    )


def test_sizes_of_which_the_check_tells_nothing_count_as_none() -> None:
    def notes_after(result: CheckResult) -> list[str]:
        draft = EvaluationDraft(task="t", candidate="c", device="d", baselines_ns={})
        trials = GeneratedTrials([workload_admission("odd", held_out=True)], draft, {"odd"})

        def try_one(workload: WorkloadAdmission) -> CandidateFailure | None:
            check = Check(kind=CheckKind.TASK_CHECK, result=result, workload=workload.workload)
            draft.add_checks((check,))
            return None

        assert trials.run(try_one) is None
        return [check.note for check in draft.built().checks]

    assert any("no sizes but the task's own" in n for n in notes_after(CheckResult.SKIPPED))
    assert notes_after(CheckResult.PASSED) == [""]
