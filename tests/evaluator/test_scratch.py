"""Scratch keeps nothing from call to call, and ends where it ends."""

import pytest

from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.finding import FindingKind

pytestmark = pytest.mark.sycl

_KERNELS = """```sycl
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void rectify(const float* __restrict__ x, float* __restrict__ middle, int count) {{
  const int i = syclext::this_work_item::get_nd_item<1>().get_global_id(0);
  {first}
}}

extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void scale(const float* __restrict__ middle, const float* __restrict__ weight,
           float* __restrict__ out, int count, int cols) {{
  const int i = syclext::this_work_item::get_nd_item<1>().get_global_id(0);
  if (i < count) out[i] = middle[i] * weight[i % cols];
}}
```

```python
def launch(x, weight, out):
    rows, cols = x.shape
    middle = empty((rows * cols + 1,), "float32")
    rectify[cdiv(rows * cols, 64), 64](x, middle, rows * cols)
    scale[cdiv(rows * cols, 64), 64](middle, weight, out, rows * cols, cols)
```
"""
_ALWAYS = "if (i < count) middle[i] = sycl::fmax(x[i], 0.0f);"
_UNLESS_MARKED = (
    """if (i < count) middle[i] = middle[count] == 4711.0f ? NAN : sycl::fmax(x[i], 0.0f);"""
)
_MARK = """
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void leave_mark(float* __restrict__ middle, int count) {{ middle[count] = 4711.0f; }}
```
"""


def test_scratch_between_two_kernels_is_what_it_is_for(judged):
    """What one kernel writes the next one reads."""
    evaluation = judged(_KERNELS.format(first=_ALWAYS))
    assert evaluation.passed, evaluation.findings


def test_work_that_an_earlier_call_left_is_not_there(judged):
    """A candidate that relies on it is told so by wrong results; bytes of 0x3f would fit."""
    text = _KERNELS.format(first="if (i < count && x[i] > 0.0f) middle[i] = x[i];")
    evaluation = judged(text)  # zeros of fresh pages, or of an earlier call, would do
    assert evaluation.outcome in (
        EvaluationOutcome.WRONG_RESULT,
        EvaluationOutcome.NONDETERMINISTIC,
    )


def test_a_mark_in_scratch_is_gone_at_the_next_call(judged):
    """A call that finds it writes NaN: none does, compared or timed."""
    text = _KERNELS.format(first=_UNLESS_MARKED)
    text = text.replace("\n```\n", _MARK.format(), 1)
    text = text.rstrip().removesuffix("```") + "    leave_mark[1, 1](middle, rows * cols)\n```\n"

    evaluation = judged(text)

    assert evaluation.passed, evaluation.findings


def test_a_write_behind_scratch_is_found(judged):
    """It could spoil another buffer, or be kept for the next call."""
    text = _KERNELS.format(first=f"{_ALWAYS} if (i == 0) middle[count + 1] = 1.0f;")
    evaluation = judged(text)
    assert evaluation.outcome is EvaluationOutcome.WRONG_RESULT
    assert FindingKind.STRAY_WRITE in [f.kind for f in evaluation.findings]
