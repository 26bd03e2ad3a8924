"""Plain kernels: every family of operators starts, and gives what PyTorch gives."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812  torch's own name for it

import kernel_foundry_native as native
from evaluator_svc.policy.source import check_source
from generator_svc.recipes import RecipeUnsupported
from generator_svc.recipes.genome import Genome, plain
from generator_svc.recipes.plain import PlainRecipe
from generator_svc.recipes.recipes import recipe_for
from kernel_foundry import plan as plans
from kernel_foundry.domain.admission import TensorRole
from kernel_foundry.domain.device import DeviceSpec
from kernel_foundry.domain.language import Language
from kernel_foundry.plan.from_admission import device_limits, name_table
from tests.cuda_on_host import host_run
from tests.recipes.plain_modules import CASES, Case, Lambda, OneInput
from tests.recipes.plain_run import Opened, Workload, admission_of, bound, workloads_of
from tests.recipes.reference_graph import CUDA_DEVICE, DEVICE

DEVICES = {Language.SYCL: DEVICE, Language.CUDA: CUDA_DEVICE}

STYLES: dict[str, tuple[int, dict[str, str]]] = {
    "first": (1, {}),
    "each_thread_alone": (0, {"share": "never", "fuse": "none", "block": "64"}),
    "blocks_share": (0, {"share": "always", "block": "128"}),
}
"""Workload and genes: every gene's values, and both sizes."""

_TOLERANCE = {torch.float16: 2e-3, torch.bfloat16: 1e-2}


@pytest.fixture(scope="module")
def works() -> dict[str, list[Workload]]:
    """Return every case in each of its sizes."""
    return {name: workloads_of(case) for name, case in CASES.items()}


def _written(
    works: dict[str, list[Workload]], device: DeviceSpec, genes: dict[str, str]
) -> dict[str, tuple[str, str]]:
    texts = {}
    for name, workloads in works.items():
        recipe = PlainRecipe(admission_of(workloads, device), device.language)
        texts[name] = recipe.write(_genome(recipe, genes))
    return texts


def _genome(recipe: PlainRecipe, genes: dict[str, str]) -> Genome:
    genome = plain(recipe.family, recipe.genes)
    for name, value in genes.items():
        genome = genome.replaced(name, value)
    return genome


def _check(opened: Opened, works: dict[str, list[Workload]], style: str) -> None:
    place, genes = STYLES[style]
    chosen = {name: workloads[place] for name, workloads in works.items()}
    found = opened.run(_written(works, opened.spec, genes), chosen)
    wrong = []
    for name, work in chosen.items():
        assert len(found[name]) == len(work.outputs), name
        for output, expected in zip(found[name].values(), work.outputs, strict=True):
            tolerance = _TOLERANCE.get(expected.dtype, 1e-4)
            close = torch.allclose(
                output.double(), expected.double(), rtol=tolerance, atol=tolerance, equal_nan=True
            )
            wrong += [] if close else [name]
    assert wrong == []


def test_a_constant_that_follows_from_no_size_is_refused_by_its_node() -> None:
    """Rather than baked in as one workload has it."""
    odd = Case(
        lambda: OneInput(lambda _, x: torch.relu(x * (0.5 if x.shape[0] == 2 else 0.7))),
        lambda n: (torch.randn(n, 4),),
    )
    said = r"a constant that depends on the sizes, \(0\.5, 0\.7\), in aten\.mul \(node mul\)"
    with pytest.raises(RecipeUnsupported, match=said):
        PlainRecipe(admission_of(workloads_of(odd), DEVICE), Language.SYCL)


@pytest.fixture(scope="module")
def sycl() -> Iterator[Opened]:
    kind = native.device_kind("sycl")
    device, compiler = kind.open_device(0), kind.open_compiler(0)
    yield Opened(kind=kind, device=device, compiler=compiler, spec=DEVICE)
    compiler.release()
    device.release()


@pytest.mark.sycl
@pytest.mark.slow
@pytest.mark.timeout(300)  # one compilation of some hundred kernels
@pytest.mark.parametrize("style", STYLES)
def test_plain_kernels_are_right_on_the_cpu(
    sycl: Opened, works: dict[str, list[Workload]], style: str
) -> None:
    # Cases differ more than styles: all are tried in the first one, half in each of the others.
    first, *others = STYLES
    names = list(works) if style == first else list(works)[others.index(style) :: len(others)]
    _check(sycl, {name: works[name] for name in names}, style)


@pytest.mark.gpu
@pytest.mark.parametrize("style", STYLES)
def test_plain_kernels_are_right_on_the_gpu(works: dict[str, list[Workload]], style: str) -> None:
    kind = native.device_kind("cuda")
    device = kind.open_device(0)
    compiler = kind.open_compiler(architecture=device.architecture)
    _check(Opened(kind=kind, device=device, compiler=compiler, spec=CUDA_DEVICE), works, style)
    compiler.release()
    device.release()


def test_plain_cuda_kernels_compile_for_hopper(
    hopper_compiler: Any, works: dict[str, list[Workload]]
) -> None:
    texts = _written(works, CUDA_DEVICE, {})
    opened = Opened(kind=None, device=None, compiler=hopper_compiler, spec=CUDA_DEVICE)
    source, kernels = opened.unit(texts, {name: w[0] for name, w in works.items()})
    built = hopper_compiler.compile(source=source, options=opened.options, kernels=kernels)
    assert b".f64" not in built.assembly, "a function of double where one of float was meant"


@pytest.mark.slow
@pytest.mark.skipif(host_run.COMPILER is None, reason="no g++ to build device code for the host")
@pytest.mark.parametrize("name", ["group_norm", "attention"])
def test_cuda_blocks_that_share_rows_are_right(
    tmp_path: Path, works: dict[str, list[Workload]], name: str
) -> None:
    """Their own text on the host, which sees a barrier that only some threads reach."""
    work = works[name][1]
    texts = _written({name: works[name]}, CUDA_DEVICE, {"share": "always", "block": "64"})
    code, plan_text = texts[name]
    assert "along += BLOCK" in code
    plan = plans.parse(plan_text)
    candidate = host_run.bind(
        code,
        plan,
        names=name_table(tensor for tensor, _ in work.named),
        configuration=plans.default_configuration(plan),
        device=device_limits(CUDA_DEVICE),
        tensors={t.name: value for t, value in work.named if t.role is not TensorRole.OUTPUT},
    )
    found = host_run.run_on_host(candidate, tmp_path)["out"]
    torch.testing.assert_close(found, work.outputs[0], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("language", list(Language))
def test_plain_candidates_pass_the_rules(
    works: dict[str, list[Workload]], language: Language
) -> None:
    """No rule on source refuses them, and their plans bind in every workload."""
    for genes in ({}, {"share": "always", "fuse": "none"}):
        for name, text in _written(works, DEVICES[language], genes).items():
            assert check_source(text[0], language.value) == (), name
            for work in works[name]:
                bound(*text, work, DEVICES[language])


def test_a_pattern_that_is_known_keeps_its_own_recipe(works: dict[str, list[Workload]]) -> None:
    case = Case(
        lambda: OneInput(lambda _, x: torch.softmax(x, -1)), lambda n: (torch.randn(n, 32),)
    )
    admission = admission_of(workloads_of(case), DEVICE)
    assert recipe_for(admission, Language.SYCL).family == "rows"
    group_norm = admission_of(works["group_norm"], DEVICE)
    assert recipe_for(group_norm, Language.SYCL).family == "plain"


def test_scratch_that_nobody_reads_any_more_is_taken_again() -> None:
    class Deep(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(8, 8) for _ in range(6)])

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for layer in self.layers:
                x = torch.relu(layer(x))
            return x

    workloads = workloads_of(Case(Deep, lambda n: (torch.randn(n, 8),)))
    code, plan = _written({"deep": workloads}, DEVICE, {})["deep"]
    assert plan.count("empty(") == 2
    assert code.count('extern "C"') == 2, "layers behind the first are one kernel"


@pytest.mark.parametrize(
    ("call", "kernels"),
    [
        (lambda _, x: torch.softmax(x * 2, -1), 1),
        (lambda _, x: F.group_norm(x, 2), 1),
        (lambda _, x: x / x.sum(1), 2),
        (lambda _, x: (torch.softmax(x, -1), x.amax(-1)), 2),
    ],
    ids=["softmax", "group_norm", "sums_of_other_rows", "another_reduction_beside"],
)
def test_rows_are_reduced_and_read_by_one_kernel(call: Any, kernels: int) -> None:
    case = Case(lambda: OneInput(call), lambda n: (torch.randn(128 * n, 128 * n),))
    works = {"rows": workloads_of(case)}
    code, _ = _written(works, DEVICE, {})["rows"]
    assert code.count('extern "C"') == kernels


@pytest.mark.parametrize(
    ("call", "missing"),
    [
        (lambda _, x: torch.special.bessel_j0(x), "aten.special_bessel_j0"),
        (lambda _, x: torch.nn.functional.dropout(x, 0.5, True), "aten.dropout in training"),
        (lambda _, x: x.double().sum().float(), "float64, of aten.to"),
        (lambda _, x: torch.sort(x)[0], "aten.sort"),
    ],
)
def test_what_is_missing_is_named(call: Any, missing: str) -> None:
    case = Case(lambda: OneInput(call), lambda n: (torch.randn(n, 4),))
    with pytest.raises(RecipeUnsupported) as caught:
        recipe_for(admission_of(workloads_of(case), DEVICE), Language.SYCL)
    assert str(caught.value) == missing


def test_what_no_output_needs_may_be_anything() -> None:
    case = Case(
        lambda: OneInput(lambda _, x: (torch.special.bessel_j0(x), torch.argmax(x, 1))[1]),
        lambda n: (torch.randn(n, 4),),
    )
    assert recipe_for(admission_of(workloads_of(case), DEVICE), Language.SYCL).family == "plain"


def _room_for_all(_: Lambda, x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    out[...] = torch.softmax(x, -1)
    return out


def _room_that_goes_on(_: Lambda, x: torch.Tensor) -> torch.Tensor:
    return torch.empty(x.shape).copy_(torch.softmax(x, -1))


@pytest.mark.parametrize("call", [_room_for_all, _room_that_goes_on])
def test_a_result_that_is_written_into_an_empty_tensor_is_the_result(call: Any) -> None:
    def recipe(of: Any) -> Any:
        case = Case(lambda: OneInput(of), lambda n: (torch.randn(n, 32),))
        return recipe_for(admission_of(workloads_of(case), DEVICE), Language.SYCL)

    written, returned = recipe(call), recipe(lambda _, x: torch.softmax(x, -1))
    genome = plain(returned.family, returned.genes)
    assert written.write(genome) == returned.write(genome)


def _room_of_half(_: Lambda, x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x, dtype=torch.float16)
    out[...] = x * 2.0
    return out


def _room_of_what_changes(_: Lambda, x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    out = torch.empty_like(x)
    out[...] = y
    y.add_(1.0)
    return out


def _fill_a_column(_: Lambda, x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y[:, 0] = 0.0
    return y


def _write_behind_a_view(_: Lambda, x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    view = y.view(-1)
    y.add_(1.0)
    return view


def _unknown_in_place(_: Lambda, x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    y.erfinv_()
    return y


@pytest.mark.parametrize(
    "call",
    [
        *(_fill_a_column, _write_behind_a_view, _unknown_in_place),
        *(_room_of_half, _room_of_what_changes),
    ],
)
def test_a_write_that_is_not_followed_is_declined(call: Any) -> None:
    case = Case(lambda: OneInput(call), lambda n: (torch.randn(n, 4),))
    with pytest.raises(RecipeUnsupported):
        recipe_for(admission_of(workloads_of(case), DEVICE), Language.SYCL)
