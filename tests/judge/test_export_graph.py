"""What torch.export follows into a graph of its own is no operator graph."""

import pytest
import torch
from torch import nn

from evaluator_svc.judge.graph.graph import export_graph
from kernel_foundry.errors import TaskInvalidError


class _Apart(nn.Module):
    """A part of it is computed where gradients are recorded."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.enable_grad():
            doubled = x * 2
        return doubled + 1


def test_a_reference_with_a_graph_within_has_no_operator_graph() -> None:
    with pytest.raises(TaskInvalidError, match="a graph of its own"):
        export_graph(_Apart(), (torch.ones(4),), ())
