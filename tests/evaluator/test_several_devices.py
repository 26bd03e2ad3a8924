"""Several devices of one host: work is spread, and one that keeps failing is set aside."""

import asyncio
from collections.abc import Iterator

import pytest

from evaluator_svc.evaluator import LocalEvaluator
from kernel_foundry.domain.request import EvaluationLimits, EvaluationRequest
from kernel_foundry.domain.task import Task, Workload
from kernel_foundry.errors import BackendUnavailableError
from kernel_foundry.plan.candidate_text import split
from tests.quick_settings import quick_settings

REFERENCE = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)

def get_inputs():
    return [torch.randn(64, 33)]

def get_init_inputs():
    return []
"""
TASK = Task(name="relu", reference=REFERENCE, workloads=(Workload(name="default"),))
# The null device knows this kernel by its name.
RELU = """```sycl
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void null_relu(const float* x, float* out, int count) {}
```
```python
def launch(x, out):
    null_relu[cdiv(x.numel(), 64), 64](x, out, x.numel())
```
"""
LIMITS = EvaluationLimits(timing_seconds=0.05)


@pytest.fixture(scope="module")
def evaluator() -> Iterator[LocalEvaluator]:
    settings = quick_settings(
        device_kinds=("null",),
        spare_processes=0,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KERNEL_FOUNDRY_NULL_DEVICES", "2")
        found = LocalEvaluator(settings)
        yield found
        asyncio.run(found.close())


def request(device: str) -> EvaluationRequest:
    return EvaluationRequest(task=TASK, device=device, source=split(RELU), limits=LIMITS)


def test_work_for_a_kind_is_spread_and_measured_alike(evaluator: LocalEvaluator) -> None:
    async def judge_all():
        capabilities = await evaluator.capabilities()
        await evaluator.admit(TASK, "null")
        verdicts = await asyncio.gather(*(evaluator.evaluate(request("null")) for _ in range(2)))
        return capabilities, verdicts

    capabilities, verdicts = asyncio.run(judge_all())

    assert [d.id for d in capabilities.devices] == ["null:0", "null:1"]
    assert [a.available for a in capabilities.availability] == [True]
    assert all(v.passed for v in verdicts), [v.findings for v in verdicts]
    assert {v.device for v in verdicts} == {"null:0", "null:1"}
    # Equal devices are measured and admitted once: another measurement would differ in its digits.
    assert len({v.workloads[0].traffic_bound_ns for v in verdicts}) == 1


def test_a_device_that_keeps_failing_is_left_for_another_then_set_aside(
    evaluator: LocalEvaluator, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def judge_two():
        await evaluator.admit(TASK, "null")
        # From now on the driver has one device only, as when a card falls off the bus.
        monkeypatch.setenv("KERNEL_FOUNDRY_NULL_DEVICES", "1")
        # The second goes to the device that is gone, since the first is busy.
        return await asyncio.gather(*(evaluator.evaluate(request("null")) for _ in range(2)))

    assert all(verdict.passed for verdict in asyncio.run(judge_two()))
    for _ in range(2):
        with pytest.raises(BackendUnavailableError, match="null device 1 of 1"):
            asyncio.run(evaluator.evaluate(request("null:1")))

    capabilities = asyncio.run(evaluator.capabilities())
    assert [d.id for d in capabilities.devices] == ["null:0"]
    reported = [a for a in capabilities.availability if a.kind == "null:1"]
    assert "3 failures in a row" in reported[0].reason
    with pytest.raises(BackendUnavailableError, match="set aside"):
        asyncio.run(evaluator.evaluate(request("null:1")))
    assert asyncio.run(evaluator.evaluate(request("null"))).passed
