"""No rule refuses or suspects what is honest: examples, recipes, lessons and known kernels."""

import random
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

import kernel_foundry_native as native
from evaluator_svc.inspector import inspect_ptx, inspect_spirv
from evaluator_svc.policy.plan import check_plan
from evaluator_svc.policy.source import check_source
from generator_svc.recipes.genome import draw, plain
from generator_svc.recipes.graph_reader import read_graph
from generator_svc.recipes.recipes import choose_recipe
from kernel_foundry import plan as plans
from kernel_foundry.domain.candidate import KernelSource
from kernel_foundry.domain.finding import Finding, Severity
from kernel_foundry.domain.language import Language
from kernel_foundry.plan.candidate_text import split
from tests.recipes.modules import MATMUL_MODULES, ROW_MODULES
from tests.recipes.reference_graph import CUDA_DEVICE, DEVICE, admission_of

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.md"))
LESSONS = sorted((ROOT / "generator_svc" / "experience" / "lessons").glob("*.yaml"))
SPIRV = sorted((ROOT / "tests" / "behaviour" / "kernels").glob("*.spv"))
BAD_SPIRV = ("calls_system", "keeps_state", "inline_assembly")
DEVICES = {Language.SYCL: DEVICE, Language.CUDA: CUDA_DEVICE}


def unwelcome(findings: tuple[Finding, ...]) -> list[str]:
    return [f"{f.rule}: {f.message}" for f in findings if f.severity is not Severity.INFO]


def of_text(text: KernelSource) -> list[str]:
    source = check_source(text.device_code, text.language)
    return unwelcome((*source, *check_plan(plans.parse(text.plan))))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.name)
def test_examples_pass(path: Path) -> None:
    assert of_text(split(path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize("path", LESSONS, ids=lambda p: p.name)
def test_excerpts_of_lessons_pass(path: Path) -> None:
    for lesson in yaml.safe_load(path.read_text(encoding="utf-8")):
        # A line of a plan may be among the lines of device code: "# plan: …".
        lines = [x for x in lesson.get("excerpt", "").splitlines() if not x.startswith("# plan")]
        for language in Language:
            if lesson.get("language") in (None, language.value):
                found = unwelcome(check_source("\n".join(lines), language))
                assert found == [], lesson["key"]


@pytest.mark.parametrize("language", Language)
@pytest.mark.parametrize("name", ROW_MODULES)
def test_recipes_of_rows_pass(name: str, language: Language) -> None:
    model, rng = ROW_MODULES[name](96), random.Random(name)
    graph = read_graph(admission_of(model, (torch.randn(4, 96),)))
    recipe = choose_recipe(graph, language=language, device=DEVICES[language])
    genomes = [plain(recipe.family, recipe.genes)]
    genomes += [draw(recipe.family, recipe.genes, rng) for _ in range(4)]
    for genome in genomes:
        code, plan = recipe.write(recipe.normalised(genome))
        assert unwelcome(check_source(code, language)) == []
        assert unwelcome(check_plan(plans.parse(plan))) == []


@pytest.mark.parametrize("language", Language)
@pytest.mark.parametrize("name", MATMUL_MODULES)
def test_recipes_of_products_pass(name: str, language: Language) -> None:
    inputs: tuple[torch.Tensor, ...] = (torch.randn(64, 100),)
    if name == "linear_residual":
        inputs += (torch.randn(64, 70),)
    graph = read_graph(admission_of(MATMUL_MODULES[name](100, 70), inputs))
    recipe = choose_recipe(graph, language=language, device=DEVICES[language])
    code, plan = recipe.write(plain(recipe.family, recipe.genes))

    assert unwelcome(check_source(code, language)) == []
    assert unwelcome(check_plan(plans.parse(plan))) == []


@pytest.mark.parametrize("path", SPIRV, ids=lambda p: p.stem)
def test_known_kernels_pass(path: Path) -> None:
    if path.stem not in BAD_SPIRV:
        assert unwelcome(inspect_spirv(path.read_bytes()).findings) == []


CUDA_EXAMPLES = [path for path in EXAMPLES if path.name.endswith(".cuda.md")]


@pytest.mark.slow
@pytest.mark.parametrize("path", CUDA_EXAMPLES, ids=lambda p: p.name)
def test_what_cuda_examples_become_passes(hopper_compiler: Any, path: Path) -> None:
    text = split(path.read_text(encoding="utf-8"))
    plan = plans.parse(text.plan)
    sizes = {c.name: 4 if c.name == "VEC" else 64 for c in plan.const}
    macros = {**plans.default_configuration(plan), **sizes}
    names = [s.name for s in plans.kernels(text.device_code, "cuda", macros)]
    unit = plans.translation_unit(text.device_code, macros, native.prelude("cuda"), "cuda")
    options = [f"-I{folder}" for folder in native.cuda_include_paths()]
    built = hopper_compiler.compile(source=unit, options=options, kernels=names)

    assert unwelcome(inspect_ptx(built.assembly, tuple(names)).findings) == []
