"""Sweeps on a CUDA device: the same misdeeds, and what one costs the next."""

import asyncio
from collections.abc import Callable, Iterator

import pytest

from evaluator_svc.evaluator import LocalEvaluator
from kernel_foundry.domain.sweep import ConfigurationResult, Validity, best_of
from tests.sweep.conftest import Swept, settings

pytestmark = pytest.mark.gpu

MODES = ("right", "wrong", "asserts", "broken", "illegal", "hangs", "slow", "shared")

TEXT = """```cuda
extern "C" __global__ void scaled_relu(const float* x, float* out, int count) {{
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  static_assert(MODE != 2, "not this one");
#if MODE == 3
  this does not compile;
#elif MODE == 4
  if (i == 0) out[1LL << 42] = 1.0f;
#elif MODE == 5
  while (*(volatile const float*)x < 1e30f) {{}}
#elif MODE == 6
  float y = i;
  for (int k = 0; k < 100000; k++) y = y * 0.999f + 1e-20f;
  if (y == 123456.0f) out[0] = y;
#elif MODE == 7
  __shared__ float far_too_much[1 << 20];
  far_too_much[threadIdx.x] = x[0];
  if (far_too_much[0] == 123456.0f) out[0] = 1.0f;
#endif
  if (i < count) out[i] = fmaxf(x[i], 0.0f) * (MODE == 1 ? 2.0f : 3.0f);
}}
```
```python
TUNE = {{"WG": {groups}, "MODE": {modes}}}
def launch(x, out):
    scaled_relu[cdiv(x.numel(), WG), WG](x, out, x.numel())
```
"""


@pytest.fixture(scope="module")
def cuda(local_evaluator: Callable[[str], LocalEvaluator]) -> Iterator[Swept]:
    with asyncio.Runner() as runner:
        yield Swept(local_evaluator("cuda"), runner)


@pytest.fixture(scope="module")
def hostile(cuda: Swept) -> dict[str, ConfigurationResult]:
    """The results of a sweep in which almost everybody misbehaves, by name of the mode."""
    text = TEXT.format(groups=[128], modes=list(range(len(MODES))))
    return {MODES[int(settings(r)["MODE"])]: r for r in cuda(text, device="cuda:0")}


@pytest.mark.parametrize(
    ("mode", "validities"),
    [
        ("right", {Validity.CORRECT}),
        ("slow", {Validity.CORRECT}),
        ("wrong", {Validity.CORRECTNESS}),
        ("asserts", {Validity.CONSTRAINTS}),
        ("broken", {Validity.COMPILE}),
        ("illegal", {Validity.RUNTIME}),
        ("hangs", {Validity.TIMEOUT}),
        ("shared", {Validity.COMPILE, Validity.RUNTIME}),
    ],
)
def test_each_misdeed_has_its_validity(
    hostile: dict[str, ConfigurationResult], mode: str, validities: set[Validity]
) -> None:
    assert hostile[mode].validity in validities, hostile[mode].findings


def test_slow_configuration_is_raced_out(hostile: dict[str, ConfigurationResult]) -> None:
    assert hostile["slow"].raced_out
    assert best_of(tuple(hostile.values())) == hostile["right"]
    assert hostile["right"].resources


def test_many_configurations_each_have_a_verdict_and_their_times(cuda: Swept) -> None:
    text = TEXT.format(groups=list(range(32, 1024, 32)), modes=[0, 1])
    results = cuda(text, device="cuda:0")
    assert len(results) == 62
    assert sum(r.is_correct for r in results) == 31
    assert all(r.times.framework_ms > 0 for r in results)
