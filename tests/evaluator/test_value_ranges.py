"""Inputs of unusual values: stable kernels pass, naive ones do not, and NaN is only reported."""

import pytest

from kernel_foundry.domain.check import CheckKind, CheckResult
from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.finding import FindingKind, Severity
from kernel_foundry.domain.task import Size, Task, Workload

pytestmark = pytest.mark.sycl


def _task(name: str, forward: str) -> Task:
    return Task(
        name=name,
        reference=f"""
import torch
from torch import nn

ROWS = 64
COLS = 512

class Model(nn.Module):
    def forward(self, x):
        return {forward}

def get_inputs():
    return [torch.randn(ROWS, COLS)]

def get_init_inputs():
    return []
""",
        workloads=(
            Workload(name="default"),
            Workload(name="odd", sizes=(Size(name="ROWS", value=3),), held_out=True),
        ),
    )


_SOFTMAX = _task("softmax", "torch.softmax(x, dim=-1)")
_NORM = _task("norm", "nn.functional.layer_norm(x, (COLS,))")

_ROWS = """```sycl
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void rows(const float* __restrict__ x, float* __restrict__ out, int cols) {{
  const auto item = syclext::this_work_item::get_nd_item<1>();
  const int lane = item.get_local_id(0);
  const float* in = x + item.get_group(0) * (size_t)cols;
  float* to = out + item.get_group(0) * (size_t)cols;
  {body}
}}
```

```python
def launch(x, out):
    rows[x.shape[0], 16](x, out, x.shape[1])
```
"""
_EXPONENTIALS = """
  float sum = 0.0f;
  for (int i = lane; i < cols; i += 16) sum += sycl::exp(in[i] - most);
  sum = sycl::reduce_over_group(item.get_group(), sum, sycl::plus<float>());
  for (int i = lane; i < cols; i += 16) to[i] = sycl::exp(in[i] - most) / sum;"""
_GUESTS = "among the timed calls: "
_MAXIMUM = """
  float most = -INFINITY;
  for (int i = lane; i < cols; i += 16) most = sycl::fmax(most, in[i]);
  most = sycl::reduce_over_group(item.get_group(), most, sycl::maximum<float>());"""
_ONE_PASS = """
  float sum = 0.0f, squares = 0.0f;
  for (int i = lane; i < cols; i += 16) { sum += in[i]; squares += in[i] * in[i]; }
  const float mean = sycl::reduce_over_group(item.get_group(), sum, sycl::plus<float>()) / cols;
  const float square =
      sycl::reduce_over_group(item.get_group(), squares, sycl::plus<float>()) / cols;
  const float scale = sycl::rsqrt(sycl::fmax(square - mean * mean, 0.0f) + 1e-5f);
  for (int i = lane; i < cols; i += 16) to[i] = (in[i] - mean) * scale;"""


def _ranges(evaluation):
    return {
        check.note.partition(":")[0]: check.result
        for check in evaluation.checks
        if check.kind is CheckKind.VALUE_RANGE and _GUESTS not in check.note
    }


def _tried_among_timed_calls(evaluation):
    notes = [c.note for c in evaluation.checks if c.kind is CheckKind.VALUE_RANGE]
    ranges = [note.removeprefix(_GUESTS).partition(":")[0] for note in notes if _GUESTS in note]
    return [text.split(", ") for text in ranges]


def test_a_stable_softmax_passes_on_every_range(judged):
    """All were tried but turned signs: a normal distribution has both."""
    evaluation = judged(_ROWS.format(body=_MAXIMUM + _EXPONENTIALS), task=_SOFTMAX)
    assert evaluation.passed, evaluation.findings
    results = _ranges(evaluation)
    assert set(results) == {
        *("large", "offset", "zeros", "sparse", "denormal", "non_finite"),
        *("magnitudes", "integers", "powers", "outliers", "few", "negative", "far", "ordered"),
        "columns",
    }
    assert set(results.values()) == {CheckResult.PASSED}
    tried = _tried_among_timed_calls(evaluation)
    assert tried
    assert all(set(names) < set(results) for names in tried)


def test_a_softmax_without_the_maximum_fails_on_large_inputs(judged):
    """It is right on ordinary ones."""
    naive = _ROWS.format(body="const float most = 0.0f;" + _EXPONENTIALS)
    evaluation = judged(naive, task=_SOFTMAX)
    assert evaluation.outcome is EvaluationOutcome.WRONG_RESULT
    findings = [f for f in evaluation.findings if f.kind is FindingKind.VALUE_RANGE]
    assert "large magnitude" in findings[0].message
    assert _ranges(evaluation)["large"] is CheckResult.FAILED


def test_the_maximum_of_a_sample_fails_where_one_element_stands_out(judged):
    """It is right wherever large values are all over a row."""
    sampled = _MAXIMUM.replace("i < cols; i += 16", "i < cols; i += 128")
    evaluation = judged(_ROWS.format(body=sampled + _EXPONENTIALS), task=_SOFTMAX)
    assert evaluation.outcome is EvaluationOutcome.WRONG_RESULT
    results = _ranges(evaluation)
    assert CheckResult.FAILED in (results["large"], results["outliers"])


def test_variance_in_one_pass_is_honest(judged):
    """In float32 it stands an offset of 16 standard deviations."""
    evaluation = judged(_ROWS.format(body=_ONE_PASS), task=_NORM)
    assert evaluation.passed, evaluation.findings
    assert _ranges(evaluation)["offset"] is CheckResult.PASSED


def test_other_ways_with_nan_are_reported_and_no_reason_to_refuse(judged):
    """Fmax drops NaN where torch's ReLU keeps it."""
    evaluation = judged(judged.right)
    assert evaluation.passed, evaluation.findings
    (finding,) = [f for f in evaluation.findings if f.kind is FindingKind.VALUE_RANGE]
    assert finding.severity is Severity.WARNING
