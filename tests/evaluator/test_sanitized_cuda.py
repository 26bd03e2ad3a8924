"""What only a sanitizer sees is refused at a promotion, on a GPU; honest kernels are clean.

Each of the wrong candidates is right in every run: it passes where no sanitizer looks.
"""

import asyncio
from collections.abc import Callable

import pytest

from evaluator_svc.evaluator import LocalEvaluator
from evaluator_svc.tools.tool_run import find
from kernel_foundry.domain.check import CheckKind, CheckResult
from kernel_foundry.domain.evaluation import Evaluation, EvaluationOutcome
from kernel_foundry.domain.request import EvaluationRequest
from kernel_foundry.plan.candidate_text import split
from tests.evaluator.conftest import LIMITS, TASK

pytestmark = pytest.mark.gpu

_HONEST = """```cuda
extern "C" __global__ void relu(const float* x, float* held, int count) {
  __shared__ float tile[128];
  const int i = blockIdx.x * 128 + threadIdx.x, turned = 127 - threadIdx.x;
  tile[threadIdx.x] = i < count ? fmaxf(x[i], 0.0f) : 0.0f;
  __syncthreads();
  const int at = blockIdx.x * 128 + turned;
  if (at < count) held[at] = tile[turned];
}
extern "C" __global__ void scale(const float* held, const float* weight, const int* notes,
                                 float* out, int count, int cols) {
  const int i = blockIdx.x * 128 + threadIdx.x;
  if (i < count) out[i] = held[i] * weight[i % cols];
}
```

```python
def launch(x, weight, out):
    rows, cols = x.shape
    count = rows * cols
    held = empty(count, "float32")
    notes = empty(count, "int32")
    relu[cdiv(count, 128), 128](x, held, count)
    scale[cdiv(count, 128), 128](held, weight, notes, out, count, cols)
```
"""


def _changed(old: str, new: str) -> str:
    assert old in _HONEST
    return _HONEST.replace(old, new)


_RACY = _changed(
    "  __syncthreads();\n",
    "  float late = x[0];  // the other warps have written long before this is done\n"
    "  for (int turn = 0; turn < 4000; ++turn) late = late * 0.5f + 1.0f;\n"
    "  if (late == 12345.0f) return;\n",
).replace("__shared__ float", "__shared__ volatile float")
_BEYOND = _changed(
    "  tile[threadIdx.x] = i < count ? fmaxf(x[i], 0.0f) : 0.0f;\n",
    "  if (i < count) {  // pairs: of an odd count the last one ends behind the input\n"
    "    const float2 pair = __ldcg(reinterpret_cast<const float2*>(x) + i / 2);\n"
    "    tile[threadIdx.x] = fmaxf(i % 2 == 0 ? pair.x : pair.y, 0.0f);\n"
    "  }\n",
)
_UNWRITTEN = _changed(
    "held[i] * weight[i % cols];",
    "held[i] * weight[i % cols] + (notes[i] == 0x0051ce77 ? 1.0f : 0.0f);",
)


@pytest.fixture(scope="module")
def judged(local_evaluator: Callable[[str], LocalEvaluator]) -> Callable[[str, bool], Evaluation]:
    """Return what judges a candidate, with or without sanitizers."""
    if find("compute-sanitizer", "KERNEL_FOUNDRY_COMPUTE_SANITIZER") is None:
        pytest.skip("compute-sanitizer is not installed")
    evaluator = local_evaluator("cuda")

    def judge(text: str, sanitize: bool) -> Evaluation:
        request = EvaluationRequest(
            task=TASK, device="cuda:0", source=split(text), limits=LIMITS, sanitize=sanitize
        )
        return asyncio.run(evaluator.evaluate(request))

    return judge


def test_an_honest_candidate_is_clean(judged: Callable[[str, bool], Evaluation]) -> None:
    verdict = judged(_HONEST, True)
    assert verdict.passed, verdict.findings
    looked = [check for check in verdict.checks if check.kind is CheckKind.SANITIZER]
    assert [check.result for check in looked] == [CheckResult.PASSED] * 4, looked


@pytest.mark.parametrize(
    ("text", "outcomes"),
    [
        # Allocations are rounded up: what lies behind the input was allocated, or only unwritten.
        (_BEYOND, {EvaluationOutcome.CRASHED: 0, EvaluationOutcome.WRONG_RESULT: 3}),
        (_RACY, {EvaluationOutcome.NONDETERMINISTIC: 1}),
        (_UNWRITTEN, {EvaluationOutcome.WRONG_RESULT: 3}),
    ],
    ids=["beyond the input", "racy", "scratch that nobody wrote"],
)
def test_what_only_a_sanitizer_sees_is_refused(
    judged: Callable[[str, bool], Evaluation], text: str, outcomes: dict[EvaluationOutcome, int]
) -> None:
    """By any of four sanitizers: for an outcome so many of them find nothing before."""
    unseen = judged(text, False)
    assert unseen.passed, unseen.findings
    refused = judged(text, True)
    assert refused.outcome in outcomes, refused.findings
    looked = [check.result for check in refused.checks if check.kind is CheckKind.SANITIZER]
    assert looked == [CheckResult.PASSED] * outcomes[refused.outcome] + [CheckResult.FAILED]
