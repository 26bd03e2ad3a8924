"""The traffic bound counts what an output needs for certain, and never more."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn import functional

from evaluator_svc.judge.graph.graph import export_graph
from evaluator_svc.judge.graph.traffic import count_traffic
from kernel_foundry.domain.admission import NamedTensor, TensorRole

Operator = Callable[..., torch.Tensor]


class _Model(nn.Module):
    def __init__(self, operator: Operator) -> None:
        super().__init__()
        self._operator = operator

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return self._operator(x, y)


def _tensor(name: str, role: TensorRole, value: torch.Tensor) -> NamedTensor:
    dtype = str(value.dtype).removeprefix("torch.")
    return NamedTensor(name=name, role=role, dtype=dtype, shape=tuple(value.shape))


def _elements_read(operator: Operator, x: torch.Tensor, y: torch.Tensor) -> int:
    model = _Model(operator)
    inputs = [_tensor("x", TensorRole.INPUT, x), _tensor("y", TensorRole.INPUT, y)]
    outputs = [_tensor("out", TensorRole.OUTPUT, model(x, y))]
    graph = export_graph(model, (x, y), [*inputs, *outputs])
    of_x = count_traffic([inputs[0], *outputs], graph).read_bytes
    return of_x // x.element_size()


def _norm(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return functional.layer_norm(x, (12,)) + y


def _glu(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    left, right = x.chunk(2, dim=1)
    return left * torch.sigmoid(right) * y.mean()


def _left_half(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    left, _ = x.chunk(2, dim=1)
    return left * y.mean()


def _unused_result(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    torch.exp(x)
    return y * 2.0


def _written_over(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = x.clone()
    out[...] = y
    return out * 2.0


def _written_by_columns(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = x.clone()
    for column in range(x.shape[1]):
        out[:, column] = y[:, column]
    return out


def _written_in_part(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = x.clone()
    out[:, :3].copy_(y[:, :3])
    return out


def _given_for_results(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = x.clone()
    torch.exp(y, out=out)
    return out


def _added_to(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = x.clone()
    out[:, :3] += y[:, :3]
    return out


def _rows_replaced(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x.index_copy(0, torch.arange(12), y)


ROWS = torch.rand(12, 12)

CASES: dict[str, tuple[Operator, int]] = {
    "all of a norm": (_norm, 144),
    "both halves of a split": (_glu, 144),
    "one half of a split": (_left_half, 72),
    "a result that nobody uses": (_unused_result, 0),
    "a slice of what is computed element by element": (lambda x, y: torch.exp(x)[:3] + y[:3], 36),
    "both ends": (lambda x, y: x[:, :6] * x[:, 6:] + y.mean(), 144),
    "the same end twice": (lambda x, y: x[:, :6] * y[:, :6] + x[:, :6].exp(), 72),
    "ends that overlap": (lambda x, y: x[:, :8] * x[:, 4:] + y.mean(), 96),
    "a triangle": (lambda x, y: torch.tril(x) @ y, 78),
    "the other triangle": (lambda x, y: torch.triu(x, diagonal=1) @ y, 66),
    "what a mask decides": (lambda x, y: torch.where(y > 0.5, x, 0.0), 0),
    "what fills where a mask says": (lambda x, y: x.masked_fill(y > 0.5, 0.0), 0),
    "a product with a mask": (lambda x, y: x * (y > 0.5).to(x.dtype), 0),
    "a mask that is made of it": (lambda x, y: torch.where(x > 0.5, y, 0.0), 144),
    "rows that indices name": (lambda x, y: x[torch.zeros(40, dtype=torch.long)] * y.mean(), 0),
    "what is written over": (_written_over, 0),
    "what is written over column by column": (_written_by_columns, 0),
    "what is written over in part": (_written_in_part, 108),
    "a copy that takes results": (_given_for_results, 0),
    "rows that indices replace": (_rows_replaced, 0),
    "a copy that is added to": (_added_to, 108),
    "a stride beyond the window": (
        lambda x, y: functional.avg_pool2d(x[None], 2, stride=4) * y.mean(),
        36,
    ),
    "a window that leaves a border": (
        lambda x, y: functional.max_pool2d(x[None], 5, stride=5) * y.mean(),
        100,
    ),
    "a product": (lambda x, y: x @ y, 144),
    "concatenated": (lambda x, y: torch.cat([x, y]), 144),
    "the front of what is concatenated": (lambda x, y: torch.cat([x, y])[:6] * 2.0, 0),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_needed_for_certain_counts(name: str) -> None:
    operator, expected = CASES[name]
    assert _elements_read(operator, ROWS, torch.rand(12, 12)) == expected


@pytest.mark.parametrize(("stride", "rows"), [(1, 12), (2, 12), (5, 9)])
def test_a_convolution_reads_what_its_filters_cover(stride: int, rows: int) -> None:
    image, filters = torch.rand(2, 3, 12, 12), torch.rand(4, 3, 3, 3)

    def convolve(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return functional.conv2d(x, y, stride=stride)

    covered = 4 * 9 if stride == 5 else math.prod((12, rows))
    assert _elements_read(convolve, image, filters) == 2 * 3 * min(covered, 144)


def test_without_a_graph_every_tensor_counts() -> None:
    tensors = [_tensor("x", TensorRole.INPUT, ROWS), _tensor("out", TensorRole.OUTPUT, ROWS)]
    assert count_traffic(tensors, ()).bytes == 2 * 4 * 144
