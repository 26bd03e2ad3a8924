"""CUDA kernels of every style give right results: their own text, run on the host."""

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from generator_svc.recipes.genome import Genome, draw, plain
from generator_svc.recipes.recipe import Recipe
from tests.cuda_on_host.host_run import COMPILER, run_on_host
from tests.recipes.cuda_candidates import bind, cuda_recipe, for_host
from tests.recipes.modules import MATMUL_MODULES, ROW_MODULES

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(COMPILER is None, reason="no g++ to build device code for the host"),
]

SHAPES = {"block": (3, 1200), "warp": (5, 101), "thread": (7, 34), "flat": (3, 61)}
"""Rows that leave packs, steps, warps and blocks over."""

STYLES = [(name, who) for name in ROW_MODULES for who in ("block", "warp", "thread")]


def _check(
    folder: Path, recipe: Recipe, genome: Genome, model: nn.Module, inputs: tuple[torch.Tensor, ...]
) -> None:
    with torch.no_grad():
        expected = model(*inputs)
    actual = run_on_host(for_host(bind(recipe, genome, model, inputs)), folder)["out"]
    np.testing.assert_allclose(
        actual.numpy(), expected.numpy(), rtol=2e-4, atol=2e-4, err_msg=genome.comment()
    )


@pytest.mark.parametrize(("name", "who"), STYLES)
def test_rows_are_right_in_every_style(tmp_path: Path, name: str, who: str) -> None:
    torch.manual_seed(1)
    shape = SHAPES[who]
    model, inputs = ROW_MODULES[name](shape[-1]), (torch.randn(*shape),)
    recipe = cuda_recipe(model, inputs)
    genome = draw(recipe.family, recipe.genes, random.Random(f"{name} {who}"))
    _check(tmp_path, recipe, genome.replaced("who", who), model, inputs)


@pytest.mark.parametrize("shape", [(1, 1), (2, 7), (4, 512), (2, 2052)])
def test_first_proposal_is_right_for_rows_of_any_length(
    tmp_path: Path, shape: tuple[int, int]
) -> None:
    torch.manual_seed(2)
    model, inputs = ROW_MODULES["bias_gelu_layernorm"](shape[-1]), (torch.randn(*shape),)
    recipe = cuda_recipe(model, inputs)
    _check(tmp_path, recipe, plain(recipe.family, recipe.genes), model, inputs)


@pytest.mark.parametrize("name", ["pointwise", "mish", "columns"])
def test_elements_without_rows_are_right_beyond_whole_packs(tmp_path: Path, name: str) -> None:
    torch.manual_seed(3)
    shape = SHAPES["flat"]
    model, inputs = ROW_MODULES[name](shape[-1]), (torch.randn(*shape),)
    recipe = cuda_recipe(model, inputs)
    genome = plain(recipe.family, recipe.genes)
    assert genome["who"] == "flat"
    _check(tmp_path, recipe, genome, model, inputs)


@pytest.mark.parametrize("keep", ["registers", "shared", "nothing"])
@pytest.mark.parametrize("moments", ["two_pass", "one_pass"])
def test_softmax_is_right_wherever_its_row_is_kept(tmp_path: Path, keep: str, moments: str) -> None:
    torch.manual_seed(4)
    model = ROW_MODULES["softmax"](1200)
    x = torch.randn(2, 1200)
    x[0, :700] = -torch.inf  # a running maximum has to survive a start without a finite value
    recipe = cuda_recipe(model, (x,))
    genome = plain(recipe.family, recipe.genes).replaced("keep", keep)
    _check(tmp_path, recipe, genome.replaced("moments", moments), model, (x,))


TILES: list[tuple[str, Callable[[Genome], Genome]]] = [
    ("first", lambda g: g),
    ("wide", lambda g: g.replaced("tile", "128x128x8x8").replaced("split", "1")),
    ("narrow", lambda g: g.replaced("tile", "64x64x8x4").replaced("bk", "32")),
    ("split", lambda g: g.replaced("tile", "64x128x8x8").replaced("split", "8")),
    ("async", lambda g: g.replaced("tile", "64x64x4x4").replaced("copy", "async")),
    ("async_split", lambda g: g.replaced("copy", "async").replaced("split", "4")),
    ("shared", lambda g: g.replaced("who", "shared")),
    ("item", lambda g: g.replaced("who", "item")),
]


@pytest.mark.parametrize("sizes", [(70, 77, 130), (130, 80, 132)], ids=["odd", "fours"])
@pytest.mark.parametrize("style", TILES, ids=[name for name, _ in TILES])
@pytest.mark.parametrize("name", MATMUL_MODULES)
def test_products_are_right_in_every_style(
    tmp_path: Path,
    name: str,
    style: tuple[str, Callable[[Genome], Genome]],
    sizes: tuple[int, int, int],
) -> None:
    torch.manual_seed(5)
    rows, depth, cols = sizes
    model = MATMUL_MODULES[name](depth, cols)
    inputs: tuple[torch.Tensor, ...] = (torch.randn(rows, depth),)
    if name == "linear_residual":
        inputs += (torch.randn(rows, cols),)
    recipe = cuda_recipe(model, inputs)
    _check(tmp_path, recipe, style[1](plain(recipe.family, recipe.genes)), model, inputs)


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ("_in + start + i", "_in + start + i + VEC", "AddressSanitizer"),
        ("if (threadIdx.x % 32 == 0) parts", "if (threadIdx.x) __syncthreads(); parts", "deadlock"),
    ],
)
def test_the_host_sees_what_a_device_would_not_forgive(
    tmp_path: Path, right: str, wrong: str, message: str
) -> None:
    model, inputs = ROW_MODULES["softmax"](1200), (torch.randn(1, 1200),)
    recipe = cuda_recipe(model, inputs)
    genome = plain(recipe.family, recipe.genes)
    candidate = bind(recipe, genome, model, inputs)
    assert right in candidate.device_code
    broken = replace(candidate, device_code=candidate.device_code.replace(right, wrong))
    with pytest.raises(AssertionError, match=message):
        run_on_host(broken, tmp_path)
