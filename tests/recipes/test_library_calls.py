"""Plain kernels beside library calls: what is called, and what is left to kernels."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812  torch's own name for it

from generator_svc.recipes.genome import plain
from generator_svc.recipes.plain import PlainRecipe
from kernel_foundry import plan as plans
from kernel_foundry.domain.language import Language
from tests.recipes.plain_modules import Case, OneInput
from tests.recipes.plain_run import Workload, admission_of, bound, workloads_of
from tests.recipes.reference_graph import CUDA_DEVICE, DEVICE

DEVICES = {Language.SYCL: DEVICE, Language.CUDA: CUDA_DEVICE}


def _workloads(call: Callable[..., Any], *shape: int, **modules: Any) -> list[Workload]:
    def model() -> nn.Module:
        return OneInput(call, **{name: make() for name, make in modules.items()})

    return workloads_of(Case(model, lambda batch: (torch.randn(batch, *shape),)))


def _recipe(workloads: list[Workload], language: Language = Language.SYCL) -> PlainRecipe:
    names = tuple(plans.LIBRARY_OPS)
    return PlainRecipe(admission_of(workloads, DEVICES[language]), language, names)


def _calls(recipe: PlainRecipe) -> list[str]:
    """Return the library calls of the first proposal."""
    _, plan = recipe.write(plain(recipe.family, recipe.genes))
    return [word.partition("(")[0] for word in plan.split() if word.startswith("ops.")]


def _linear() -> nn.Module:
    return nn.Linear(8, 8)


def _conv() -> nn.Module:
    return nn.Conv2d(3, 4, 3)


@pytest.mark.parametrize(
    ("call", "modules"),
    [
        (lambda m, x: m.linear(x), {"linear": _linear}),
        (lambda m, x: m.linear(m.linear(x)).view(-1), {"linear": _linear}),
        (lambda m, x: (m.linear(x), torch.relu(x)), {"linear": _linear}),
    ],
    ids=["one", "views_only", "one_of_two_outputs"],
)
def test_calls_that_leave_kernels_no_work_are_none(call: Any, modules: dict[str, Any]) -> None:
    """Kernels of a candidate have to compute something that every output depends on."""
    recipe = _recipe(_workloads(call, 8, **modules))
    assert "library" not in [gene.name for gene in recipe.genes]
    assert _calls(recipe) == []


def test_a_pool_is_a_kernel_where_nothing_else_would_be_one() -> None:
    pooled = _recipe(_workloads(lambda m, x: F.max_pool2d(m.conv(x), 2), 3, 8, 8, conv=_conv))
    assert _calls(pooled) == ["ops.conv2d"]
    active = _workloads(lambda m, x: F.max_pool2d(torch.relu(m.conv(x)), 2), 3, 8, 8, conv=_conv)
    assert _calls(_recipe(active)) == ["ops.conv2d", "ops.max_pool2d"]


def test_a_product_with_a_transposed_matrix_transposes_nothing() -> None:
    workloads = _workloads(lambda m, x: torch.relu(x @ m.linear.weight.t()), 8, linear=_linear)
    code, plan = _recipe(workloads).write(plain("plain", _recipe(workloads).genes))
    assert "ops.linear(x, linear_weight)" in plan
    assert code.count('extern "C"') == 1


def test_a_result_that_is_an_output_goes_there() -> None:
    workloads = _workloads(lambda m, x: m.linear(torch.relu(x)), 8, linear=_linear)
    code, plan = _recipe(workloads).write(plain("plain", _recipe(workloads).genes))
    assert "bias=linear_bias, out=out)" in plan
    assert code.count('extern "C"') == 1


def _attention(m: Any, x: torch.Tensor) -> torch.Tensor:
    query, key, value = (t.view(*t.shape[:2], 2, 4).transpose(1, 2) for t in m.qkv(x).chunk(3, -1))
    mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
    return x + m.out(mixed.transpose(1, 2).flatten(2))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("language", DEVICES)
def test_calls_bind_in_every_size_and_type(language: Language, dtype: torch.dtype) -> None:
    """Scratch that the library reads has its type and shape."""

    def model() -> nn.Module:
        found = OneInput(_attention, qkv=nn.Linear(8, 24), out=nn.Linear(8, 8))
        return found.to(dtype)

    workloads = workloads_of(Case(model, lambda batch: (torch.randn(batch, 5, 8).to(dtype),)))
    recipe = _recipe(workloads, language)
    for fuse in ("chains", "none"):
        text = recipe.write(plain(recipe.family, recipe.genes).replaced("fuse", fuse))
        for workload in workloads:
            steps = bound(*text, workload, DEVICES[language])[0].steps
            called = [step.op for step in steps if isinstance(step, plans.LibraryCall)]
            assert called == ["linear", "scaled_dot_product_attention", "linear"]
