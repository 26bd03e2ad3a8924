"""A device with little memory: judged seed by seed, with the verdicts of any other device."""

import asyncio
from collections.abc import Iterator

import pytest

from evaluator_svc.evaluator import LocalEvaluator
from kernel_foundry.domain.check import CheckResult
from kernel_foundry.domain.evaluation import Evaluation, EvaluationOutcome
from kernel_foundry.domain.finding import FindingKind
from kernel_foundry.domain.sweep import SweepRequest, Validity
from kernel_foundry.plan.candidate_text import split
from tests.evaluator.conftest import LIMITS, Judged
from tests.quick_settings import quick_settings

pytestmark = pytest.mark.sycl

MEMORY = 40 << 20
"""Too little for the copies that are rotated beyond the cache, plenty for one set."""

PREPARED = """```sycl
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void twice(const float* weight, float* doubled, int count) {
  const int i = syclext::this_work_item::get_nd_item<1>().get_global_id(0);
  if (i < count) doubled[i] = 2.0f * weight[i];
}
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void scaled_relu(const float* x, const float* doubled, float* out, int count, int cols) {
  const int i = syclext::this_work_item::get_nd_item<1>().get_global_id(0);
  if (i < count) out[i] = sycl::fmax(x[i], 0.0f) * (0.5f * doubled[i % cols]);
}
```

```python
def prepare(weight):
    doubled = empty(weight.shape, float32)
    twice[cdiv(weight.numel(), 64), 64](weight, doubled, weight.numel())


def launch(x, doubled, out):
    rows, cols = x.shape
    scaled_relu[cdiv(rows * cols, 64), 64](x, doubled, out, rows * cols, cols)
```
"""


@pytest.fixture(scope="module")
def lean() -> Iterator[Judged]:
    settings = quick_settings(
        device_kinds=("sycl",), device_memory_bytes=MEMORY, host_cache_bytes=32 << 20
    )
    evaluator = LocalEvaluator(settings)
    asyncio.run(evaluator.capabilities())
    yield Judged(evaluator, "sycl:0")
    asyncio.run(evaluator.close())


def fact(evaluation: Evaluation, name: str) -> str:
    return next((fact.value for fact in evaluation.evidence if fact.name == name), "")


def test_a_right_candidate_passes_seed_by_seed(lean: Judged) -> None:
    evaluation = lean(lean.right)

    assert evaluation.passed, evaluation.findings
    assert "default" in fact(evaluation, "judged seed by seed for want of memory")
    assert "shared buffers" in fact(evaluation, "device memory")
    correctness = evaluation.workloads[0].correctness
    assert correctness is not None
    assert (correctness.seed_count, correctness.run_count) == (3, 3)
    assert correctness.precision is not None
    assert all(check.result is CheckResult.PASSED for check in evaluation.checks)


def test_promotions_and_prepared_weights_work_there(lean: Judged) -> None:
    evaluation = lean(PREPARED, fresh_baselines=True)

    assert evaluation.passed, evaluation.findings
    assert {b.name for b in evaluation.workloads[0].baselines} >= {"eager"}


def test_a_wrong_candidate_fails_there(lean: Judged) -> None:
    evaluation = lean(lean.right.replace("weight[i % cols]", "weight[(i + 1) % cols]"))

    assert evaluation.outcome is EvaluationOutcome.WRONG_RESULT


def test_two_at_once_wait_for_each_other(lean: Judged) -> None:
    async def both() -> tuple[Evaluation, Evaluation]:
        request = lean.request(lean.right)
        return await asyncio.gather(
            lean.evaluator.evaluate(request), lean.evaluator.evaluate(request)
        )

    assert all(evaluation.passed for evaluation in asyncio.run(both()))
    (site,) = lean.evaluator._sites.working()
    # Given back in the background, once the runner is dead.
    with site.memory.lease(site.memory.capacity_bytes) as everything:
        assert everything.size_bytes == int(0.9 * MEMORY)


def test_scratch_that_never_fits_is_the_candidates_doing(lean: Judged) -> None:
    (site,) = lean.evaluator._sites.working()
    # As much as a plan may ask for on this device, if it had it.
    text = lean.right.replace("float* __restrict__ out,", "float* out, float* scratch,")
    text = text.replace(
        "    rows, cols", f"    s = empty(({MEMORY // 20},), float32)\n    rows, cols"
    )
    text = text.replace("weight, out, rows", "weight, out, s, rows")
    site.memory.capacity_bytes, kept = 8 << 20, site.memory.capacity_bytes
    try:
        evaluation = lean(text)
    finally:
        site.memory.capacity_bytes = kept

    assert evaluation.outcome is EvaluationOutcome.PLAN_ERROR
    assert [f.kind for f in evaluation.findings] == [FindingKind.MEMORY_LIMIT]
    assert "ask for less scratch" in evaluation.findings[0].hint


def test_a_sweep_works_there(lean: Judged) -> None:
    text = lean.right.replace("def launch", "TUNE = {'WG': (32, 64)}\n\n\ndef launch").replace(
        "rows * cols, 64), 64]", "rows * cols, WG), WG]"
    )

    async def swept() -> list[Validity]:
        request = SweepRequest(task=lean.task, device="sycl:0", source=split(text), limits=LIMITS)
        return [result.validity async for result in lean.evaluator.sweep(request)]

    assert asyncio.run(swept()) == [Validity.CORRECT, Validity.CORRECT]
