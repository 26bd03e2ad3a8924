"""Times per kernel in a verdict, and which of a runner's are believed."""

import io

import pytest
from rich.console import Console

from evaluator_svc.messages.plausible import ImplausibleError, check_answer
from evaluator_svc.messages.runner import StepTimes, StepTimesRequest
from kernel_foundry.cli.evaluate import show
from kernel_foundry.domain.kernel_time import KernelTime, shares
from kernel_foundry.sdk.verdict_text import evaluation_object, kernel_times_text

SPLIT = KernelTime(kernel="split", launches=2, median_ns=24e3)
PRODUCT = KernelTime(kernel="product", launches=1, median_ns=1.176e6)

TWO_KERNELS = """```sycl
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void positive(const float* __restrict__ x, float* __restrict__ y, int count) {
  const int i = syclext::this_work_item::get_nd_item<1>().get_global_id(0);
  if (i < count) y[i] = sycl::fmax(x[i], 0.0f);
}
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void scaled(const float* __restrict__ y, const float* __restrict__ weight,
            float* __restrict__ out, int count, int cols) {
  const int i = syclext::this_work_item::get_nd_item<1>().get_global_id(0);
  if (i < count) out[i] = y[i] * weight[i % cols];
}
```

```python
def launch(x, weight, out):
    rows, cols = x.shape
    y = empty((rows, cols), float32)
    positive[cdiv(rows * cols, 64), 64](x, y, rows * cols)
    scaled[cdiv(rows * cols, 64), 64](y, weight, out, rows * cols, cols)
```
"""


@pytest.mark.sycl
def test_a_verdict_on_several_kernels_has_the_time_of_each_and_what_is_launched(judged):
    """Of the timed workload, in table and JSON."""
    evaluation = judged(TWO_KERNELS)
    assert evaluation.passed, evaluation.findings
    timed, held_out = evaluation.workloads
    assert [(t.kernel, t.launches) for t in timed.kernel_times] == [("positive", 1), ("scaled", 1)]
    assert all(t.median_ns > 0 for t in timed.kernel_times)
    assert held_out.kernel_times == ()
    shown = io.StringIO()
    show(Console(file=shown, width=200), evaluation)
    assert f"time per kernel: {kernel_times_text(timed.kernel_times)}" in shown.getvalue()
    (found, _) = evaluation_object(evaluation, task_name="t")["workloads"]
    assert [t["kernel"] for t in found["kernel_times"]] == ["positive", "scaled"]
    launches = evaluation.launches
    assert launches is not None
    assert (launches.launch_count, launches.group_size, launches.kernel) == (2, 64, "positive")
    assert (
        launches.group_count * 64 >= timed.correctness.element_count / timed.correctness.seed_count
    )
    assert evaluation_object(evaluation, task_name="t")["launches"]["group_size"] == 64


@pytest.mark.sycl
def test_a_verdict_on_one_kernel_has_none(judged):
    assert judged(judged.right).workloads[0].kernel_times == ()


def test_times_in_words_are_of_one_launch_and_shares_of_all():
    """A kernel's launches count together in its share."""
    text = "split 2 × 12 µs (2 %), product 1 × 1.18 ms (98 %)"
    assert kernel_times_text((SPLIT, PRODUCT)) == text
    assert kernel_times_text(()) == ""


def test_shares_of_times_that_are_all_zero_are_zero():
    """A runner may say so."""
    nothing = KernelTime(kernel="k", launches=1, median_ns=0.0)
    assert shares((nothing, nothing)) == (0.0, 0.0)


_REQUEST = StepTimesRequest(workload="w", kernels=("split", "product"), flush_bytes=0)


def _step_times(*times: KernelTime) -> StepTimes:
    return StepTimes(own_ns=1.0, library_ns=0.0, kernel_times=times, call_count=6)


def test_honest_times_are_taken():
    """What is refused below is refused for what it says."""
    check_answer(_REQUEST, _step_times(SPLIT, PRODUCT), blob_count=0)


@pytest.mark.parametrize(
    "times",
    [
        (SPLIT, SPLIT),
        (SPLIT, KernelTime(kernel="other", launches=1, median_ns=1.0)),
        (KernelTime(kernel="split", launches=0, median_ns=1.0),),
        (KernelTime(kernel="split", launches=1 << 60, median_ns=1.0),),
        (KernelTime(kernel="split", launches=1, median_ns=float("nan")),),
        (KernelTime(kernel="split", launches=1, median_ns=-1.0),),
    ],
    ids=["twice", "not there", "no launch", "launches without end", "no number", "negative"],
)
def test_times_that_cannot_be_are_refused(times):
    """No honest runner says this."""
    with pytest.raises(ImplausibleError):
        check_answer(_REQUEST, _step_times(*times), blob_count=0)
