"""Inputs that a reference gives no values hold zeros, whatever memory held before."""

import pytest
import torch

from evaluator_svc.judge.reference.task_module import TaskModule
from kernel_foundry.domain.task import Task

COUNT = 1000


def _inputs(made: str) -> list[torch.Tensor]:
    task = Task(
        name="room",
        reference=(
            "import torch\nfrom torch import nn\nclass Model(nn.Module): ...\n"
            f"def get_inputs(): return [{made}]\n"
        ),
    )
    module = TaskModule(task, task.workloads[0], torch.device("cpu"))
    left = [torch.full((COUNT,), 7.0) for _ in range(50)]
    del left  # its memory is what is given out next
    values = module.input_values(seed=1)
    module.close()
    return values


@pytest.mark.parametrize(
    "made",
    [
        f"torch.empty({COUNT})",
        f"torch.empty_like(torch.ones({COUNT}))",
        f"torch.empty_strided(({COUNT},), (1,))",
        f"torch.ones(1).new_empty({COUNT})",
        f"torch.FloatTensor({COUNT})",
        f"torch.empty({COUNT}, dtype=torch.float8_e4m3fn)",
        f"torch.empty({COUNT}, dtype=torch.int64)",
    ],
)
def test_memory_without_values_holds_zeros(made: str) -> None:
    (value,) = _inputs(made)
    assert not value.view(torch.uint8).any()


def test_values_that_are_drawn_stay() -> None:
    drawn, filled = _inputs(f"torch.randn({COUNT}), torch.empty({COUNT}).fill_(3.0)")
    torch.manual_seed(1)
    assert torch.equal(drawn, torch.randn(COUNT))
    assert (filled == 3.0).all()
