"""A real evaluator on the CPU device and candidates with a search space."""

import asyncio
from collections.abc import Callable, Iterator

import pytest

from evaluator_svc.evaluator import LocalEvaluator
from kernel_foundry.domain.evaluation import Setting
from kernel_foundry.domain.request import EvaluationLimits
from kernel_foundry.domain.sweep import Configuration, ConfigurationResult, SweepRequest
from kernel_foundry.domain.task import Size, Task, Workload
from kernel_foundry.plan.candidate_text import split

LIMITS = EvaluationLimits(build_seconds=20.0, run_seconds=3.0, timing_seconds=0.2)

REFERENCE = """
import torch
from torch import nn

ROWS = 256
COLS = 512

class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x) * 3.0

def get_inputs():
    return [torch.randn(ROWS, COLS)]

def get_init_inputs():
    return []
"""

TASK = Task(
    name="scaled_relu",
    reference=REFERENCE,
    workloads=(
        Workload(name="default"),
        Workload(
            name="odd",
            sizes=(Size(name="ROWS", value=3), Size(name="COLS", value=101)),
            held_out=True,
        ),
    ),
)

HEAD = """```sycl
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void scaled_relu(const float* x, float* out, int count) {
  const int i = syclext::this_work_item::get_nd_item<1>().get_global_id(0);
"""
STORE = "  if (i < count) out[i] = sycl::fmax(x[i], 0.0f) * 3.0f;\n"
TAIL = """}}
```

```python
{plan}
def launch(x, out):
    {require}
    scaled_relu[cdiv(x.numel(), WG), WG](x, out, x.numel())
```
"""

MODES = ("right", "wrong", "asserts", "broken", "crashes", "hangs", "slow", "held_out")
"""What the configurations of `hostile` do; the name of each is its MODE."""

HOSTILE_BODY = """
  static_assert(MODE != 2, "not this one");
#if MODE == 3
  this does not compile;
#elif MODE == 4
  if (i == 0) out[1LL << 42] = 1.0f;
#elif MODE == 5
  volatile int stop = 0;
  while (!stop) {}
#elif MODE == 6
  if (i < count) {
    float y = x[i];
    for (int k = 0; k < 3000; k++) y = y * 0.999f + (k & 1 ? 1e-20f : -1e-20f);
    if (y == 123456.0f) out[i] = y;
  }
#elif MODE == 7
  if (count == 303) return;
#endif
  if (i < count) out[i] = sycl::fmax(x[i], 0.0f) * (MODE == 1 ? 2.0f : 3.0f);
"""


def candidate(tune: str, *, body: str = STORE, require: str = "pass") -> str:
    """Return a candidate's text; `tune` is its TUNE, and WHERE if any."""
    return HEAD + body + TAIL.format(plan=tune, require=require)


def settings(result: ConfigurationResult) -> dict[str, str]:
    return {s.name: s.value for s in result.configuration}


def configuration(**values: object) -> Configuration:
    return Configuration(
        settings=tuple(Setting(name=name, value=str(value)) for name, value in values.items())
    )


Sweep = Callable[..., list[ConfigurationResult]]


class Swept:
    """An evaluator with a synchronous face.

    Args:
        evaluator: The evaluator.
        runner: Runs its calls.
    """

    def __init__(self, evaluator: LocalEvaluator, runner: asyncio.Runner) -> None:
        self.evaluator = evaluator
        self._runner = runner

    def __call__(self, text: str, **others: object) -> list[ConfigurationResult]:
        fields = {"task": TASK, "device": "sycl:0", "limits": LIMITS} | others
        request = SweepRequest(source=split(text), **fields)  # type: ignore[arg-type]

        async def work() -> list[ConfigurationResult]:
            return [result async for result in self.evaluator.sweep(request)]

        return self._runner.run(work())


@pytest.fixture(scope="session")
def sweep(local_evaluator: Callable[[str], LocalEvaluator]) -> Iterator[Swept]:
    """One evaluator for all tests: its judge takes seconds to start."""
    with asyncio.Runner() as runner:
        yield Swept(local_evaluator("sycl"), runner)
