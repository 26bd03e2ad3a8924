"""A model that knows the way only when it is shown it: kernels of the same form, each with a trap.

It falls into its task's trap unless the prompt shows the remedy, which only a lesson can; a repair
without one succeeds now and then by luck. The kernels are real ones: the evaluator compiles and
runs them, and what it says of a trap is its own finding. Served by an HTTP server.
"""

import random
from dataclasses import dataclass
from typing import Final

from kernel_foundry.domain.task import Task, Workload
from tests.llm_server import Answer, ReceivedRequest, good

LUCK: Final = 0.1
"""Chance that a repair succeeds without being shown the remedy."""

COUNT: Final = 30_001
"""Elements of a tensor: no multiple of any work-group."""

_KERNEL: Final = """\
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void apply(const float* __restrict__ x, float* __restrict__ out, int count) {{
  auto item = syclext::this_work_item::get_nd_item<1>();
  const int i = item.get_global_id(0);
  if (i >= count) return;
  const float v = x[i] * {scale}f;
  {line}
}}"""

_PLAN: Final = """\
def launch(x, out):
    count = x.numel()
    {launch}"""

_GOOD_LAUNCH: Final = "apply[cdiv(count, 256), 256](x, out, count)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trap:
    """A mistake that a family of tasks invites."""

    name: str
    operator: str
    """What the reference computes of `v`."""
    line: str
    """The kernel's line that computes it right."""
    remedy: str
    """What the right text has and the wrong one has not; prompts show it in lessons alone."""
    wrong_line: str = ""
    """Instead of `line`; empty: the mistake is in the plan."""
    launch: str = _GOOD_LAUNCH
    wrong_launch: str = _GOOD_LAUNCH
    scales: tuple[str, str] = ("1.0", "0.5")
    """What its two tasks multiply by first."""


_GELU: Final = (
    "out[i] = 0.5f * v * (1.0f + sycl::tanh(0.79788456f * (v + {constant} * v * v * v)));"
)

TRAPS: Final = (
    Trap(
        name="unknown_function",
        operator="torch.erf(v)",
        line="out[i] = sycl::erf(v);",
        remedy="sycl::erf(v)",
        wrong_line="out[i] = sycl::erff(v);",
    ),
    Trap(
        name="grid_rounded_down",
        operator="v * v",
        line="out[i] = v * v;",
        remedy="(count + 255) // 256",
        launch="apply[(count + 255) // 256, 256](x, out, count)",
        wrong_launch="apply[count // 256, 256](x, out, count)",
    ),
    Trap(
        name="overflow",
        operator="torch.nn.functional.softplus(v)",
        line="out[i] = sycl::fmax(v, 0.0f) + sycl::log1p(sycl::exp(-sycl::fabs(v)));",
        remedy="sycl::log1p(sycl::exp(-sycl::fabs(",
        wrong_line="out[i] = sycl::log(1.0f + sycl::exp(v));",
        scales=("150.0", "90.0"),
    ),
    Trap(
        name="arguments_exchanged",
        operator="torch.nn.functional.relu(v)",
        line="out[i] = sycl::fmax(v, 0.0f);",
        remedy="apply[cdiv(count, 128), 128](x, out, count)",
        launch="apply[cdiv(count, 128), 128](x, out, count)",
        wrong_launch="apply[cdiv(count, 128), 128](out, x, count)",
    ),
    Trap(
        name="wrong_constant",
        operator="torch.nn.functional.gelu(v, approximate='tanh')",
        line=_GELU.format(constant="0.044715f"),
        remedy="0.044715f",
        wrong_line=_GELU.format(constant="0.447150f"),
    ),
)

_REFERENCE: Final = """\
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        v = x * {scale}
        return {operator}


def get_inputs():
    return [torch.randn({count})]


def get_init_inputs():
    return []
"""

TASKS: Final = tuple(
    (
        trap,
        scale,
        Task(
            name=f"{trap.name}_{number}",
            reference=_REFERENCE.format(scale=scale, operator=trap.operator, count=COUNT),
            workloads=(Workload(name="default"),),
        ),
    )
    for number in range(2)
    for trap in TRAPS
    for scale in (trap.scales[number],)
)
"""Each trap at two tasks, so that a lesson of one must help with the other."""


class ApprenticeProvider:
    """A behaviour of the server."""

    def __init__(self, *, seed: int) -> None:
        self._seed = seed
        self.shown = 0
        """Requests whose prompt showed the remedy."""

    def __call__(self, request: ReceivedRequest) -> Answer:
        """Answer one request with a whole candidate."""
        rng = random.Random(f"{self._seed}/{request.number}")
        trap, scale, _ = next(t for t in TASKS if t[2].reference.strip() in request.text)
        is_shown = trap.remedy in request.text
        self.shown += is_shown
        is_lucky = "repair this candidate" in request.text and rng.random() < LUCK
        return good(_candidate(trap, scale, request.number, is_right=is_shown or is_lucky))


def _candidate(trap: Trap, scale: str, number: int, *, is_right: bool) -> str:
    line = trap.line if is_right else trap.wrong_line or trap.line
    launch = trap.launch if is_right else trap.wrong_launch
    kernel = _KERNEL.format(scale=scale, line=line)
    plan = _PLAN.format(launch=launch)
    return f"```sycl\n// variant {number}\n{kernel}\n```\n```python\n{plan}\n```\n"
