"""Library calls of exported plans: where results go, and that nothing else is done."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.nn import functional

from evaluator_svc.evaluator import LocalEvaluator
from evaluator_svc.judge.reference.operators import OperatorMode, operator_name
from kernel_foundry.sdk.export.runtime.bound_call import BoundCall
from kernel_foundry.sdk.export.runtime.layouts import Layouts
from kernel_foundry.sdk.export.runtime.plan import Buffer, LibraryCall, Operand, Sequence
from kernel_foundry.sdk.export.torch_file import torch_file
from tests.export.conftest import TASK, imported, winner_of

_KERNELS = {
    "sycl": """
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void scale(const float* from, float* to, float factor, int count) {
  const int i = syclext::this_work_item::get_nd_item<1>().get_global_id(0);
  if (i < count) to[i] = from[i] * factor;
}
""",
    "cuda": """
extern "C" __global__ void scale(const float* from, float* to, float factor, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) to[i] = from[i] * factor;
}
""",
}
_PLAN = """
def launch(x, linear_weight, linear_bias, factor, out):
    scaled = empty(x.shape, float32)
    bias = empty(linear_bias.shape, float32)
    scale[cdiv(x.numel(), 64), 64](x, scaled, factor, x.numel())
    scale[1, 64](linear_bias, bias, factor, linear_bias.numel())
    ops.linear(scaled, linear_weight, bias=bias, out=out)
"""
_VIEWS = ("view", "t", "detach", "alias", "empty", "reshape", "slice")


class _Work(OperatorMode):
    """Names of the operators that do something, and axes of what they take first."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []
        self.axes: list[int] = []

    def run(self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        name = operator_name(func)
        if name not in _VIEWS:
            self.names.append(name)
            self.axes.append(args[0].ndim)
        return func(*args, **kwargs)


def _bound(steps: tuple[LibraryCall, ...], tensors: dict[str, torch.Tensor]) -> BoundCall:
    """Bind library calls alone: no kernel asks anything of the device."""
    device: Any = SimpleNamespace(alignment=4, is_host=True, is_current=lambda: True)
    shape = (*tensors["x"].shape[:-1], tensors["w"].shape[0])
    named = {name: tuple(tensor.shape) for name, tensor in tensors.items()} | {"out": shape}
    buffers = [Buffer("tensor", name, "float32", sizes) for name, sizes in named.items()]
    buffers.append(Buffer("scratch", "", "float32", shape))
    return BoundCall(
        device,
        None,
        Sequence(tuple(buffers), (), steps),
        Layouts(),
        list(tensors.values()),
        tuple(tensors),
        (("out", shape, "float32"),),
        is_deterministic=True,
    )


X, W, B, OUT, OWN = range(5)


@pytest.mark.parametrize("rows", [(), (5,), (2, 3)])
def test_a_layer_writes_its_result_with_the_bias(rows: tuple[int, ...]) -> None:
    tensors = {"x": torch.randn(*rows, 7), "w": torch.randn(4, 7), "b": torch.randn(4)}
    layer = LibraryCall(functional.linear, (Operand(X), Operand(W)), {"bias": Operand(B)}, OUT)
    call = _bound((layer,), tensors)
    with _Work() as work:
        (result,) = call.results(list(tensors.values()))
    assert (work.names, work.axes) == (["linear"], [2]), "of a matrix it is one product"
    torch.testing.assert_close(result, functional.linear(*tensors.values()))


def test_what_the_plan_keeps_is_not_copied_and_what_cannot_be_written_is() -> None:
    tensors = {"x": torch.randn(5, 7), "w": torch.randn(4, 7), "b": torch.randn(4)}
    layer = LibraryCall(functional.linear, (Operand(X), Operand(W)), {"bias": Operand(B)}, OWN)
    pool = LibraryCall(functional.max_pool1d, (Operand(OWN), 1), {}, OUT)
    call = _bound((layer, pool), tensors)
    with _Work() as work:
        (result,) = call.results(list(tensors.values()))
    assert work.names.count("copy_") == 1
    torch.testing.assert_close(result, functional.linear(*tensors.values()))


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("sycl", marks=pytest.mark.sycl),
        pytest.param("cuda", marks=pytest.mark.gpu),
    ],
)
def test_an_exported_file_ends_with_a_call(
    local_evaluator: Callable[[str], LocalEvaluator], tmp_path: Path, kind: str
) -> None:
    candidate = f"```{kind}{_KERNELS[kind]}```\n```python{_PLAN}```\n"
    winner = asyncio.run(winner_of(local_evaluator(kind), TASK, candidate, kind))
    name = f"fast_library_{kind}"
    fast = imported(torch_file([winner], name), tmp_path, name)
    place = "cuda" if kind == "cuda" else "cpu"
    model = fast.Module(48, 40, 2.0).to(place)
    x = torch.randn(64, 48, device=place)
    with torch.no_grad():
        torch.testing.assert_close(model(x), model.linear(x) * 2.0, rtol=1e-4, atol=1e-4)
    assert fast.stats()["reference"] == 0, fast.stats()
