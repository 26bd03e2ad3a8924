"""Which library calls a task allows, by its reference's own graph or by the names it gives."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from evaluator_svc.judge.graph.graph import export_program, graph_of
from kernel_foundry.domain.admission import Admission
from kernel_foundry.domain.task import Task, Tolerance
from kernel_foundry.plan import LIBRARY_OPS, NO_LIBRARY, allowed_library_ops
from tests.domain_values import CPU, workload_admission

TASK = Task(name="t", reference="")
PRODUCTS = ("linear", "matmul", "mm", "bmm", "addmm", "baddbmm")
IMAGE = torch.ones(1, 4, 8, 8)
ROWS = torch.ones(2, 4, 8)


class _Attention(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.scaled_dot_product_attention(x, x, x)


def _admitted(model: nn.Module, value: torch.Tensor) -> Admission:
    graph = graph_of(export_program(model, (value,)), ())
    return Admission(
        task=TASK.digest,
        device=CPU,
        workloads=(workload_admission(graph=graph),),
        tolerance=Tolerance(rtol=1e-4, atol=1e-5),
    )


@pytest.mark.parametrize(
    ("model", "value", "allowed"),
    [
        (nn.Softmax(-1), ROWS, ()),
        (nn.Linear(8, 8), ROWS, PRODUCTS),
        (nn.GRU(8, 8), ROWS, PRODUCTS),
        (_Attention(), ROWS, (*PRODUCTS, "scaled_dot_product_attention")),
        (
            nn.Sequential(nn.Conv2d(4, 4, 3, padding="same"), nn.MaxPool2d(2)),
            IMAGE,
            ("conv2d", "max_pool2d"),
        ),
        (
            nn.Sequential(nn.ConvTranspose2d(4, 4, 3), nn.AdaptiveAvgPool2d(2)),
            IMAGE,
            ("conv_transpose2d", "adaptive_avg_pool2d"),
        ),
    ],
    ids=["none", "linear", "recurrent", "attention", "convolution", "transposed"],
)
def test_what_the_reference_calls_is_allowed(
    model: nn.Module, value: torch.Tensor, allowed: tuple[str, ...]
) -> None:
    assert allowed_library_ops(TASK, _admitted(model, value)) == allowed


def test_names_of_the_task_count_alone() -> None:
    admitted = _admitted(nn.Linear(8, 8), ROWS)

    assert allowed_library_ops(replace(TASK, library_ops=("conv1d",)), admitted) == ("conv1d",)
    assert allowed_library_ops(replace(TASK, library_ops=(NO_LIBRARY,)), admitted) == ()
    assert allowed_library_ops(replace(TASK, library_ops=(NO_LIBRARY,)), None) == ()


def test_before_admission_nothing_is_refused_that_may_be_allowed() -> None:
    assert allowed_library_ops(TASK, None) == tuple(LIBRARY_OPS)
