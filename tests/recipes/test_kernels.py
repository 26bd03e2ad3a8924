"""Every style of every recipe gives right results, compiled and run for real."""

import random
import re
from collections.abc import Sequence
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

import kernel_foundry_native as native
from evaluator_svc.behaviour import PlanCounts, measures
from evaluator_svc.inspector import inspect_spirv
from generator_svc.recipes.genome import Genome, draw, plain
from generator_svc.recipes.graph_reader import read_graph
from generator_svc.recipes.recipe import Recipe
from generator_svc.recipes.recipes import choose_recipe
from kernel_foundry import plan as plans
from kernel_foundry.domain.language import Language
from kernel_foundry.plan.from_admission import device_limits, name_table
from kernel_foundry_native.sycl_headers import header_option
from tests.recipes.modules import ROW_MODULES
from tests.recipes.plain_run import launch_argument
from tests.recipes.reference_graph import DEVICE, admission_of, tensors_of

pytestmark = [pytest.mark.sycl, pytest.mark.slow]

LIMITS = device_limits(DEVICE)

_INCLUDE = re.compile(r"^#include .*\n", re.MULTILINE)

SHAPES = ((1, 1), (3, 17), (5, 1001), (4, 64))


@pytest.fixture(scope="module")
def sycl():  # type: ignore[no-untyped-def]
    kind = native.device_kind("sycl")
    opened = SimpleNamespace(kind=kind, device=kind.open_device(0), compiler=kind.open_compiler(0))
    yield opened
    opened.compiler.release()
    opened.device.release()


class Style:
    """One genome, bound to one input: what is compiled, and what runs it.

    Args:
        number: Of the style among those that are built together.
        recipe: The recipe.
        genome: Its genome.
        model: The reference.
        shape: Of the input.
    """

    def __init__(
        self, number: int, recipe: Recipe, genome: Genome, model: nn.Module, shape: tuple[int, ...]
    ) -> None:
        self.genome = genome
        x = torch.randn(*shape)
        with torch.no_grad():
            self.expected = model(x)
        self.out = torch.full_like(self.expected, float("nan"))
        self._tensors = {"x": x, "out": self.out}
        self._tensors |= {p.replace(".", "_"): v.detach() for p, v in model.named_parameters()}
        names = name_table(tensors_of(model, (x,)))
        code, plan_text = recipe.write(genome)
        # Kernels are `extern "C"`: their names are one, whatever namespace they are in.
        for kernel in re.findall(r"\bvoid (\w+)(?=\(const float)", code):
            own = re.compile(rf"\b{kernel}\b")
            code, plan_text = (own.sub(f"{kernel}_{number}", text) for text in (code, plan_text))
        plan = plans.parse(plan_text)
        configuration = plans.default_configuration(plan)
        macros = {**configuration, **plans.constants(plan, names, configuration, LIMITS)}
        signatures = plans.kernels(code, "sycl", macros)
        self.kernels = [s.name for s in signatures]
        undefined = "".join(f"#undef {name}\n" for name in macros)
        self.includes = frozenset(_INCLUDE.findall(code))
        text = plans.translation_unit(_INCLUDE.sub("", code), macros, "", "sycl")
        self.text = f"namespace style_{number} {{\n{text}\n}}\n{undefined}"
        self._bound = plans.bind(
            plan,
            signatures,
            names=names,
            configuration=configuration,
            device=LIMITS,
            language="sycl",
        )
        for buffer in self._bound.buffers:
            if buffer.kind != "tensor":
                self._tensors[buffer.name] = torch.full(buffer.shape, float("nan"))

    def run(self, kind, device, program) -> None:  # type: ignore[no-untyped-def]
        """Run it as the evaluator would."""
        sequence = kind.LaunchSequence(device)
        for step in (*self._bound.prepare, *self._bound.steps):
            assert isinstance(step, plans.Launch)
            sequence.launch(
                program=program,
                kernel=step.kernel,
                grid=step.grid,
                block=step.block,
                dimensions=step.dimensions,
                arguments=[launch_argument(kind, a) for a in step.arguments],
            )
        sequence.bind(0, [self._tensors[b.name].data_ptr() for b in self._bound.buffers])
        sequence.run(0)


def _build(compiler, styles: Sequence[Style], options: Sequence[str] = ()):  # type: ignore[no-untyped-def]
    """Build all styles in one run of the compiler, most of which goes into headers."""
    kernels = [name for style in styles for name in style.kernels]
    includes = "".join(sorted(frozenset[str]().union(*(style.includes for style in styles))))
    text = includes + "".join(style.text for style in styles)
    source = native.prelude("sycl") + "\n" + text
    blocks = f"-I{native.blocks_include_path('sycl')}"
    options = [header_option(text), blocks, *options]
    return compiler.compile(source=source, options=options, kernels=kernels)


def _check(sycl, styles: Sequence[Style], program) -> None:  # type: ignore[no-untyped-def]
    for style in styles:
        style.run(sycl.kind, sycl.device, program)
        np.testing.assert_allclose(
            style.out.numpy(),
            style.expected.numpy(),
            rtol=2e-4,
            atol=2e-4,
            err_msg=style.genome.comment(),
        )


def _load(sycl, styles: Sequence[Style], options: Sequence[str] = ()):  # type: ignore[no-untyped-def]
    built = _build(sycl.compiler, styles, options)
    return sycl.device.load(code=built.code, kernels=[k for s in styles for k in s.kernels])


def _row_styles(name: str, first_number: int) -> list[Style]:
    torch.manual_seed(1)
    rng = random.Random(name)
    styles: list[Style] = []
    for who, shape in zip(("item", "vector", "group", "sub_group"), SHAPES[::-1], strict=True):
        model = ROW_MODULES[name](shape[-1])
        if name == "standardise" and shape[-1] == 1:
            continue  # a variance of one element is not a number
        recipe = choose_recipe(
            read_graph(admission_of(model, (torch.randn(*shape),))),
            language=Language.SYCL,
            device=DEVICE,
        )
        genome = plain(recipe.family, recipe.genes)
        if who != "item":
            genome = draw(recipe.family, recipe.genes, rng).replaced("who", who)
        number = first_number + len(styles)
        styles.append(Style(number, recipe, recipe.normalised(genome), model, shape))
    return styles


@pytest.fixture(scope="module")
def rows(sycl):  # type: ignore[no-untyped-def]
    """Return (styles of each module, the program of all); unoptimised, which takes a third."""
    styles = {name: _row_styles(name, 10 * n) for n, name in enumerate(ROW_MODULES)}
    program = _load(sycl, [s for found in styles.values() for s in found], ["-O0"])
    return styles, program


@pytest.mark.parametrize("name", ROW_MODULES)
def test_row_recipe_is_right_in_every_style(sycl, rows, name: str) -> None:  # type: ignore[no-untyped-def]
    styles, program = rows
    _check(sycl, styles[name], program)


def test_product_with_epilogue_is_right_for_odd_sizes(sycl) -> None:  # type: ignore[no-untyped-def]
    torch.manual_seed(2)
    model = nn.Sequential(nn.Linear(37, 21), nn.ReLU())
    x = torch.randn(13, 37)

    class Named(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = model[0]

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.relu(self.linear(x)) * 0.5

    named = Named()
    recipe = choose_recipe(
        read_graph(admission_of(named, (x,))), language=Language.SYCL, device=DEVICE
    )
    first = plain(recipe.family, recipe.genes)
    genomes = [first.replaced("who", who) for who in ("item", "tile", "vector")]
    styles = [Style(n, recipe, g, named, (13, 37)) for n, g in enumerate(genomes)]
    _check(sycl, styles, _load(sycl, styles))


def test_product_with_columns_is_right_for_odd_sizes(sycl) -> None:  # type: ignore[no-untyped-def]
    torch.manual_seed(3)

    class Product(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.right = nn.Parameter(torch.randn(37, 85))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.tanh(x @ self.right)

    model = Product()
    recipe = choose_recipe(
        read_graph(admission_of(model, (torch.randn(13, 37),))),
        language=Language.SYCL,
        device=DEVICE,
    )
    genome = plain(recipe.family, recipe.genes).replaced("who", "vector")
    styles = [Style(0, recipe, genome, model, (13, 37))]
    _check(sycl, styles, _load(sycl, styles))


@pytest.mark.parametrize("keep", ["nothing", "local"])
@pytest.mark.parametrize("who", ["item", "group", "sub_group"])
def test_row_styles_land_where_they_are_expected(sycl, who: str, keep: str) -> None:  # type: ignore[no-untyped-def]
    admission = admission_of(ROW_MODULES["softmax"](64), (torch.randn(4, 64),))
    recipe = choose_recipe(read_graph(admission), language=Language.SYCL, device=DEVICE)
    first = plain(recipe.family, recipe.genes)
    genome = recipe.normalised(first.replaced("who", who).replaced("keep", keep))
    built = _build(sycl.compiler, [Style(0, recipe, genome, ROW_MODULES["softmax"](64), (4, 64))])
    counts = PlanCounts(launch_count=1, scratch_count=0, reference_op_count=1)
    found = measures(inspect_spirv(built.code).kernels, counts)
    assert found.cell == recipe.expected(genome)
