"""Every example's CUDA candidate, from text to verdict on a GPU."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from evaluator_svc.evaluator import LocalEvaluator
from kernel_foundry.domain.request import EvaluationRequest
from kernel_foundry.plan.candidate_text import split
from kernel_foundry.sdk.task_file import read_task

pytestmark = pytest.mark.gpu

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = sorted(path.name.partition(".")[0] for path in EXAMPLES.glob("*.cuda.md"))


@pytest.fixture(scope="module")
def evaluator(local_evaluator: Callable[[str], LocalEvaluator]) -> LocalEvaluator:
    return local_evaluator("cuda")


@pytest.mark.parametrize("name", NAMES)
def test_an_example_passes_with_times_and_resources(evaluator: LocalEvaluator, name: str) -> None:
    task = read_task(EXAMPLES / f"{name}.py")
    text = (EXAMPLES / f"{name}.cuda.md").read_text()

    verdict = asyncio.run(
        evaluator.evaluate(EvaluationRequest(task=task, device="cuda:0", source=split(text)))
    )

    assert verdict.passed, [finding.message for finding in verdict.findings]
    assert verdict.compile is not None
    assert all(kernel.registers > 0 for kernel in verdict.compile.kernels)
    (timed,) = [w for w in verdict.workloads if not w.held_out]
    assert timed.timing is not None
    assert len(timed.timing.host_ns) == len(timed.timing.samples_ns) >= 10
    assert {"eager", "cuda_graph"} <= {b.name for b in timed.baselines}
    assert (timed.own_share is not None) == bool(task.library_ops)
