"""Whether a reference computes the same in training and in evaluation mode."""

from typing import Any

import pytest
import torch
from torch import nn

from evaluator_svc.judge.graph.graph import export_graph
from evaluator_svc.judge.graph.mode import ignores_mode


def scale_of(module: nn.Module) -> float:
    return 2.0 if module.training else 1.0


class Helped(nn.Module):
    """Asks for the mode in a function of its file."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * scale_of(self)


class Asking(nn.Module):
    """Asks for the mode, which gives the same operators."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        def number() -> float:
            return float(getattr(self, "training") in (True, False))  # noqa: B009

        return x * number()


class Merging(nn.Module):
    """Changes when its mode does."""

    def train(self, mode: bool = True) -> "Merging":
        return super().train(mode)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2.0


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (nn.LayerNorm(6), True),
        (nn.Sequential(nn.Linear(6, 6), nn.GELU(), nn.Softmax(-1)), True),
        (nn.Sequential(nn.Linear(6, 6), nn.Dropout(0.5)), False),
        (nn.Unflatten(1, (6, 1)), True),
        (nn.Sequential(nn.Unflatten(1, (6, 1)), nn.BatchNorm1d(6)), False),
        (Helped(), False),
        (Asking(), False),
        (Merging(), False),
    ],
    ids=["layer_norm", "mlp", "dropout", "view", "batch_norm", "helped", "asking", "merging"],
)
@pytest.mark.parametrize("is_training", [True, False])
def test_the_mode_is_ignored_where_no_code_asks_for_it(
    model: nn.Module, expected: bool, is_training: bool
) -> None:
    values: list[Any] = [torch.randn(4, 6)]
    graph = export_graph(model.train(is_training), values, ())
    assert ignores_mode(model, values, (), graph) is expected
    assert not ignores_mode(model, values, (), ())
