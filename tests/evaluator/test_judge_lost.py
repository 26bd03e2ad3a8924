"""A judge that dies takes its draws along: nobody is judged by those of its successor."""

import asyncio

import pytest

from evaluator_svc.evaluator import LocalEvaluator
from evaluator_svc.pipeline.correctness import compare_runs
from evaluator_svc.pipeline.runner_calls import run
from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.request import EvaluationLimits, EvaluationRequest
from kernel_foundry.domain.task import Task, Tolerance, Workload
from kernel_foundry.errors import KernelFoundryError, ProcessLostError
from kernel_foundry.plan.candidate_text import split
from tests.evaluator.test_several_devices import REFERENCE, RELU
from tests.quick_settings import quick_settings

TASK = Task(name="relu", reference=REFERENCE, workloads=(Workload(name="default"),))
LIMITS = EvaluationLimits(timing_seconds=0.05)
BUILT = """```cuda
extern "C" __global__ void relu(const float* x, float* out, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = fmaxf(x[i], 0.0f);
}
```
```python
def launch(x, out):
    relu[cdiv(x.numel(), 64), 64](x, out, x.numel())
```
"""


def test_a_candidate_is_not_judged_by_the_draws_of_another_judge(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = quick_settings(
        device_kinds=("null",),
        spare_processes=0,
    )
    evaluator = LocalEvaluator(settings)
    asyncio.run(evaluator.admit(TASK))
    (site,) = evaluator._sites.working()
    replaced = []

    def run_and_lose_the_judge(process, drawn, *, seconds):
        answer = run(process, drawn, seconds=seconds)
        if not replaced:
            site.judge.close()
            # Meanwhile another candidate starts a judge, whose first draw has the same number.
            tolerance = Tolerance(rtol=0.0, atol=0.0)
            replaced.append(site.judge.draw(TASK, "default", tolerance, (1, 2, 3))[0])
            assert replaced[0].draw == drawn.draw.draw
        return answer

    monkeypatch.setattr(compare_runs, "run", run_and_lose_the_judge)
    request = EvaluationRequest(task=TASK, device="null:0", source=split(RELU), limits=LIMITS)
    with pytest.raises(ProcessLostError, match="judge is gone"):
        asyncio.run(evaluator.evaluate(request))

    asyncio.run(asyncio.sleep(0.2))  # what it drew is released in the background
    site.judge.poison(replaced[0].draw)  # not by this evaluation: it is still there
    assert asyncio.run(evaluator.evaluate(request)).passed
    asyncio.run(evaluator.close())


def test_a_reference_that_ends_the_judge_does_not_end_builds() -> None:
    settings = quick_settings(device_kinds=(), spare_processes_of_gpu=0)
    evaluator = LocalEvaluator(settings)

    def build(reference: str):
        task = Task(name="relu", reference=reference, workloads=(Workload(name="default"),))
        request = EvaluationRequest(
            task=task, device="", source=split(BUILT), build_only=True, architecture="sm_90"
        )
        return asyncio.run(evaluator.evaluate(request))

    with pytest.raises(KernelFoundryError):
        build("import os\nos._exit(3)\n")
    assert build(REFERENCE).outcome is EvaluationOutcome.BUILT
    asyncio.run(evaluator.close())
