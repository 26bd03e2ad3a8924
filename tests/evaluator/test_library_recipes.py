"""Recipes that call the library: what they write for common modules passes, and what they leave."""

import asyncio
from collections.abc import Callable

import pytest

from evaluator_svc.evaluator import LocalEvaluator
from generator_svc import recipes
from kernel_foundry.domain.archive import Selection
from kernel_foundry.domain.candidate import Operator
from kernel_foundry.domain.request import EvaluationLimits, EvaluationRequest
from kernel_foundry.domain.task import Size, Task, Workload
from kernel_foundry.plan import allowed_library_ops
from kernel_foundry.plan.candidate_text import split

KINDS = [
    pytest.param("sycl", marks=pytest.mark.sycl),
    pytest.param("cuda", marks=pytest.mark.gpu),
]
LIMITS = EvaluationLimits(build_seconds=20.0, run_seconds=20.0, timing_seconds=0.05)

_TASK = """
import torch
from torch import nn
from torch.nn import functional as F

rows = 24

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        {layers}

    def forward(self, x):
        {forward}

def get_inputs():
    return [torch.randn({shape})]

def get_init_inputs():
    return []
"""


def _task(name: str, shape: str, layers: str, forward: str) -> Task:
    indented = [text.replace("\n", "\n        ") for text in (layers, forward)]
    reference = _TASK.format(shape=shape, layers=indented[0], forward=indented[1])
    # A held-out workload of our own, so that none are generated: each is a build.
    odd = Workload(name="odd", sizes=(Size(name="rows", value=3),), held_out=True)
    return Task(name=name, reference=reference, workloads=(Workload(name="default"), odd))


TASKS = {
    task.name: task
    for task in (
        _task(
            "geglu",
            "rows, 80",
            "self.up = nn.Linear(80, 128)\n"
            "self.down = nn.Linear(64, 80)\n"
            "self.norm = nn.RMSNorm(80)",
            "value, gate = self.up(x).chunk(2, dim=-1)\n"
            "return self.norm(x + self.down(value * F.gelu(gate)))",
        ),
        _task(
            "conv_norm",
            "rows, 6, 7, 6",
            "self.conv = nn.Conv2d(6, 8, 3, padding=1)\nself.norm = nn.GroupNorm(2, 8)",
            "return F.silu(self.norm(self.conv(x)))",
        ),
        _task(
            "mlp",
            "rows, 40",
            "self.first = nn.Linear(40, 64)\nself.second = nn.Linear(64, 300)",
            "return torch.softmax(self.second(torch.relu(self.first(x))), dim=-1)",
        ),
        _task(
            "alike_layers",
            "rows, 5, 40",
            "self.first = nn.Linear(40, 40)\n"
            "self.second = nn.Linear(40, 40)\n"
            "self.third = nn.Linear(40, 40)",
            "for layer in (self.first, self.second, self.third):\n"
            "    x = torch.tanh(layer(x))\n"
            "return x",
        ),
    )
}


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("kind", KINDS)
def test_kernels_between_library_calls_pass(
    local_evaluator: Callable[[str], LocalEvaluator], kind: str, name: str
) -> None:
    """The first proposal of a run, for tasks whose sidecar says nothing of the library.

    Where layers are alike, a call's result goes where that of an earlier one was.
    """
    task, evaluator = TASKS[name], local_evaluator(kind)
    admission = asyncio.run(evaluator.admit(task))
    assert admission.admitted, admission.refusals
    text = recipes.propose(
        admission=admission,
        selection=Selection(operator=Operator.SEED),
        language=admission.device.language,
        seed=0,
        library_ops=allowed_library_ops(task, admission),
    )
    assert "ops." in text
    assert ("out=tmp_0" in text) == (name == "alike_layers")
    evaluation = asyncio.run(
        evaluator.evaluate(
            EvaluationRequest(
                task=task, device=admission.device.id, source=split(text), limits=LIMITS
            )
        )
    )
    assert evaluation.passed, (evaluation.outcome, evaluation.findings)
