"""The time of a call, divided among the kernels of a plan that launches several."""

import pytest

from tests.runner.conftest import draw_inputs

pytestmark = pytest.mark.sycl

KERNELS = """```sycl
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void twice(const float* __restrict__ x, float* __restrict__ y, int count) {
  const int i = syclext::this_work_item::get_nd_item<1>().get_global_id(0);
  if (i < count) y[i] = 2.0f * x[i];
}
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void orbit(const float* __restrict__ y, float* __restrict__ out, int count, int steps) {
  const int i = syclext::this_work_item::get_nd_item<1>().get_global_id(0);
  if (i >= count) return;
  float value = y[i];
  for (int step = 0; step < steps; ++step) value = value - value * value * 0.001f;
  out[i] = value;
}
```
"""
COUNT = 4096


def _times(sycl, plan):
    text = f"{KERNELS}\n```python\ndef launch(x, out):\n{plan}```\n"
    candidate = sycl.load(text, draw_inputs(x=(COUNT,), out=(COUNT,)))
    candidate.run()
    candidate.fill_pool()
    assert candidate.time().samples_ns
    return candidate.step_times().kernel_times


def test_the_kernel_that_does_more_takes_longer(sycl):
    """It does some ten thousand times as much; the other comes first, and twice."""
    plan = (
        "    y = empty((4096,), float32)\n"
        "    z = empty((4096,), float32)\n"
        "    twice[64, 64](x, y, 4096)\n"
        "    twice[64, 64](y, z, 4096)\n"
        "    orbit[64, 64](z, out, 4096, 20000)\n"
    )
    short, long = _times(sycl, plan)
    assert (short.kernel, short.launches) == ("twice", 2)
    assert (long.kernel, long.launches) == ("orbit", 1)
    assert 0 < short.median_ns < long.median_ns


def test_of_one_kernel_there_is_nothing_to_tell(sycl):
    """However often it is launched, its time is that of the call."""
    plan = (
        "    y = empty((4096,), float32)\n"
        "    twice[64, 64](x, y, 4096)\n"
        "    twice[64, 64](y, out, 4096)\n"
    )
    assert _times(sycl, plan) == ()
