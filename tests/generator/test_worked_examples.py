"""Every worked example that a prompt shows is judged for real: what models imitate is right."""

import asyncio
import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from evaluator_svc.evaluator import LocalEvaluator
from generator_svc.prompting.writer import PromptWriter
from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.request import EvaluationLimits, EvaluationRequest, ProposalRequest
from kernel_foundry.domain.task import Size, Task, Workload
from kernel_foundry.plan.candidate_text import split

LIMITS = EvaluationLimits(build_seconds=20.0, run_seconds=5.0, timing_seconds=0.05)

REFERENCE = """
import torch
from torch import nn

ROWS = 96
COLS = 320

class Model(nn.Module):
    def __init__(self, cols, negative_slope):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(cols))
        self.negative_slope = negative_slope

    def forward(self, x):
        return nn.functional.leaky_relu(x + self.bias, self.negative_slope)

def get_inputs():
    return [torch.randn(ROWS, COLS)]

def get_init_inputs():
    return [COLS, 0.01]
"""
"""The task that the examples say they solve; COLS is odd in the held-out workload, so that the
CUDA example's packs get narrower."""

TASK = Task(
    name="bias_leaky_relu",
    reference=REFERENCE,
    workloads=(
        Workload(name="default"),
        Workload(
            name="odd",
            sizes=(Size(name="ROWS", value=5), Size(name="COLS", value=301)),
            held_out=True,
        ),
    ),
)

LINEAR = """
import torch
from torch import nn

ROWS = 256
COLS = 512

class Model(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(384, cols, dtype=torch.bfloat16))
        self.bias = nn.Parameter(torch.randn(384, dtype=torch.bfloat16))

    def forward(self, x):
        return torch.relu(nn.functional.linear(x, self.weight, self.bias))

def get_inputs():
    return [torch.randn(ROWS, COLS, dtype=torch.bfloat16)]

def get_init_inputs():
    return [COLS]
"""
"""The task of the example that is made of building blocks."""

LINEAR_TASK = Task(
    name="linear_relu",
    reference=LINEAR,
    workloads=(
        Workload(name="default"),
        Workload(name="cut", sizes=(Size(name="ROWS", value=136),), held_out=True),
    ),
)

CUDA_EXAMPLES = [(TASK, "An example"), (LINEAR_TASK, "Building blocks")]


@pytest.fixture
def evaluator(
    request: pytest.FixtureRequest, local_evaluator: Callable[[str], LocalEvaluator]
) -> LocalEvaluator:
    """An evaluator of the device kind that the test names."""
    return local_evaluator(request.param)


def shown_example(request: ProposalRequest, language: Language, heading: str = "An example") -> str:
    """Return the example that a prompt in `language` shows under `heading`."""
    architecture = "sm_90" if language is Language.CUDA else "x86-64"
    device = replace(request.admission.device, language=language, architecture=architecture)
    request = replace(request, admission=replace(request.admission, device=device))
    text = PromptWriter().write(request).messages[0].content
    section = text.partition(f"\n## {heading}\n")[2]
    return re.split(r"^## |^# Rules", section, maxsplit=1, flags=re.MULTILINE)[0]


@pytest.mark.sycl
@pytest.mark.parametrize("evaluator", ["sycl"], indirect=True)
def test_the_sycl_example_passes(evaluator: LocalEvaluator, request_: ProposalRequest) -> None:
    verdict = asyncio.run(
        evaluator.evaluate(
            EvaluationRequest(
                task=TASK,
                device="sycl",
                source=split(shown_example(request_, Language.SYCL)),
                limits=LIMITS,
            )
        )
    )
    assert verdict.passed, [finding.message for finding in verdict.findings]
    assert verdict.speedup is not None


@pytest.mark.parametrize("evaluator", [""], indirect=True)
@pytest.mark.parametrize(("task", "heading"), CUDA_EXAMPLES)
def test_a_cuda_example_builds_without_a_gpu(
    evaluator: LocalEvaluator, request_: ProposalRequest, task: Task, heading: str
) -> None:
    verdict = asyncio.run(
        evaluator.evaluate(
            EvaluationRequest(
                task=task,
                device="",
                source=split(shown_example(request_, Language.CUDA, heading)),
                limits=LIMITS,
                build_only=True,
                architecture="sm_90",
            )
        )
    )
    assert verdict.outcome is EvaluationOutcome.BUILT, verdict.findings
    assert verdict.compile is not None
    assert {kernel.spill_bytes for kernel in verdict.compile.kernels} == {0}


@pytest.mark.gpu
@pytest.mark.parametrize("evaluator", ["cuda"], indirect=True)
@pytest.mark.parametrize(("task", "heading"), CUDA_EXAMPLES)
def test_a_cuda_example_passes(
    evaluator: LocalEvaluator, request_: ProposalRequest, task: Task, heading: str
) -> None:
    verdict = asyncio.run(
        evaluator.evaluate(
            EvaluationRequest(
                task=task,
                device="cuda",
                source=split(shown_example(request_, Language.CUDA, heading)),
                limits=replace(LIMITS, timing_seconds=1.0),
            )
        )
    )
    assert verdict.passed, [finding.message for finding in verdict.findings]
