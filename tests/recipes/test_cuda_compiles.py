"""Every CUDA proposal compiles for Hopper, with no device; the first one spills nothing."""

import importlib.util
import random
import re
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import nn

import kernel_foundry_native as native
from evaluator_svc.behaviour import PlanCounts, measures
from evaluator_svc.inspector import inspect_ptx
from evaluator_svc.policy.source import check_source
from generator_svc.recipes import RecipeUnsupported
from generator_svc.recipes.genome import Genome, draw, plain
from generator_svc.recipes.recipe import Recipe
from kernel_foundry.domain.measures import Measures
from tests.cuda_on_host.host_run import BoundCandidate
from tests.recipes.cuda_candidates import bind, cuda_recipe
from tests.recipes.modules import MATMUL_MODULES, ROW_MODULES

EXAMPLES = Path(__file__).parents[2] / "examples"

COVERED = ("softmax", "bias_gelu_layernorm", "residual_rmsnorm", "matmul_bias_relu")

_SPILLS = re.compile(r"(\d+) bytes spill stores")


def _build(compiler: Any, candidate: BoundCandidate) -> Any:
    assert check_source(candidate.device_code, "cuda") == ()
    built = _compiled(compiler, candidate.unit(native.prelude("cuda")), candidate.kernels)
    assert inspect_ptx(built.assembly, candidate.kernels).findings == ()
    return built


@cache
def _compiled(compiler: Any, unit: str, kernels: tuple[str, ...]) -> Any:
    """A first proposal is looked at by several tests."""
    return compiler.compile(source=unit, options=[], kernels=list(kernels))


def _measures(candidate: BoundCandidate, built: Any) -> Measures:
    counts = PlanCounts(
        launch_count=len(candidate.sequence.steps),
        scratch_count=sum(b.kind == "scratch" for b in candidate.sequence.buffers),
        reference_op_count=3,
    )
    return measures(inspect_ptx(built.assembly).kernels, counts)


def _example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _example_recipe(name: str, **sizes: int) -> tuple[Recipe, nn.Module, tuple[torch.Tensor, ...]]:
    module = _example(name)
    vars(module).update(sizes)
    model = module.Model(*module.get_init_inputs()).eval()
    inputs = tuple(module.get_inputs())
    return cuda_recipe(model, inputs), model, inputs


@pytest.mark.parametrize("name", COVERED)
def test_first_proposal_for_an_example_spills_nothing(hopper_compiler: Any, name: str) -> None:
    recipe, model, inputs = _example_recipe(name)
    genome = recipe.normalised(plain(recipe.family, recipe.genes))
    built = _build(hopper_compiler, bind(recipe, genome, model, inputs))
    spills = [int(count) for count in _SPILLS.findall(built.log)]
    assert spills
    assert not any(spills), built.log
    assert b"v4.f32" in built.assembly  # wide loads


@pytest.mark.parametrize("name", COVERED)
def test_first_proposal_lands_where_it_is_expected(hopper_compiler: Any, name: str) -> None:
    recipe, model, inputs = _example_recipe(name)
    genome = recipe.normalised(plain(recipe.family, recipe.genes))
    candidate = bind(recipe, genome, model, inputs)
    assert _measures(candidate, _build(hopper_compiler, candidate)).cell == recipe.expected(genome)


@pytest.mark.parametrize(("name", "memory"), [("softmax", 2), ("bias_gelu_layernorm", 1)])
def test_what_is_kept_in_shared_memory_lands_where_it_is_expected(
    hopper_compiler: Any, name: str, memory: int
) -> None:
    """What was read is staged; what was computed is not."""
    recipe, model, inputs = _example_recipe(name)
    first = plain(recipe.family, recipe.genes)
    genome = recipe.normalised(first.replaced("who", "block").replaced("keep", "shared"))
    candidate = bind(recipe, genome, model, inputs)
    cell = _measures(candidate, _build(hopper_compiler, candidate)).cell
    assert cell == recipe.expected(genome) == (memory, 2, 2)


@pytest.mark.parametrize(
    ("name", "operator", "sizes"),
    [
        ("causal_attention", "split", {"length": 16}),
        ("conv_relu_pool", "conv2d", {}),
        ("gru", "zeros", {"length": 4}),
        ("residual_block", "conv2d", {}),
    ],
)
def test_examples_that_are_not_covered_are_refused_with_the_reason(
    name: str, operator: str, sizes: dict[str, int]
) -> None:
    with pytest.raises(RecipeUnsupported, match=operator):
        _example_recipe(name, **sizes)


def _neighbours(recipe: Recipe) -> tuple[Genome, ...]:
    first = plain(recipe.family, recipe.genes)
    steps = [first.replaced(g.name, v) for g in recipe.genes for v in g.values]
    return tuple(dict.fromkeys(recipe.normalised(genome) for genome in steps))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["softmax", "bias_gelu_layernorm", "matmul_bias_relu"])
def test_every_gene_of_an_example_compiles(hopper_compiler: Any, name: str) -> None:
    recipe, model, inputs = _example_recipe(name)
    for genome in _neighbours(recipe):
        _build(hopper_compiler, bind(recipe, genome, model, inputs))


@pytest.mark.slow
@pytest.mark.parametrize("name", ROW_MODULES)
def test_random_genomes_of_rows_compile(hopper_compiler: Any, name: str) -> None:
    for columns in (77, 3072, 70000):
        model, inputs = ROW_MODULES[name](columns), (torch.randn(2, columns),)
        recipe = cuda_recipe(model, inputs)
        genome = draw(recipe.family, recipe.genes, random.Random(f"{name} {columns}"))
        _build(hopper_compiler, bind(recipe, genome, model, inputs))


@pytest.mark.slow
@pytest.mark.parametrize("name", MATMUL_MODULES)
def test_random_genomes_of_products_compile(hopper_compiler: Any, name: str) -> None:
    rng = random.Random(name)
    for rows, depth, cols in ((64, 100, 70), (512, 1024, 1024), (2048, 2048, 2048)):
        model = MATMUL_MODULES[name](depth, cols)
        inputs: tuple[torch.Tensor, ...] = (torch.randn(rows, depth),)
        if name == "linear_residual":
            inputs += (torch.randn(rows, cols),)
        recipe = cuda_recipe(model, inputs)
        for _ in range(2):
            _build(
                hopper_compiler, bind(recipe, draw(recipe.family, recipe.genes, rng), model, inputs)
            )
