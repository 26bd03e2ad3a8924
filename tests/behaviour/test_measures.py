import re
import subprocess
import sys
from pathlib import Path

import pytest

from evaluator_svc.behaviour import PlanCounts, explain, measures
from evaluator_svc.inspector import inspect_spirv
from kernel_foundry.domain.measures import DIMENSIONS, LEVEL_TEXTS, LEVELS
from kernel_foundry.plan import default_configuration, parse, split
from kernel_foundry.plan.macros import macro_text

CELLS = {
    "row_per_item": (0, 0, 0),
    "row_per_sub_group": (1, 2, 2),
    "row_per_work_group": (1, 2, 1),
    "matmul_local_tile": (2, 2, 1),
    "matmul_register_tile": (3, 3, 1),
    "sum_by_atomics": (1, 2, 3),
    "pointwise": (1, 0, 0),
    "pointwise_vector": (1, 0, 0),
}
EXAMPLES = Path(__file__).parents[2] / "examples"
KERNELS = Path(__file__).parent / "kernels"

EXAMPLE_CELLS = {
    "bias_gelu_layernorm": (1, 2, 2),
    "softmax": (1, 2, 2),
    "residual_rmsnorm": (1, 2, 2),
    "matmul_bias_relu": (1, 3, 2),
}
OTHER_WORDS = "other_words"
"""The kernel `row_per_item` with names and comments of other kinds of kernels."""


def _other_words(text: str) -> str:
    renamed = re.sub(r"\btop\b", "sub_group_barrier_atomic_tile", text)
    renamed = re.sub(r"\bsum\b", "local_accessor_reduce_over_group", renamed)
    return f"// online softmax, Welford, tiling, prefetch, atomic_ref, sub_group\n{renamed}"


def _example(name: str) -> str:
    candidate = split((EXAMPLES / f"{name}.sycl.md").read_text())
    tuned = default_configuration(parse(candidate.plan))
    macros = "".join(f"#define {n} {macro_text(v)}\n" for n, v in tuned.items())
    return macros + candidate.device_code


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """SPIR-V by name, of the compiler at hand, in one process of its own."""
    sources = {name: (KERNELS / f"{name}.sycl").read_text() for name in CELLS}
    sources[OTHER_WORDS] = _other_words(sources["row_per_item"])
    sources |= {name: _example(name) for name in EXAMPLE_CELLS}
    folder = tmp_path_factory.mktemp("compiled")
    paths = [folder / f"{name}.sycl" for name in sources]
    for path, text in zip(paths, sources.values(), strict=True):
        path.write_text(text, encoding="utf-8")
    script = Path(__file__).with_name("compile_kernels.py")
    command = [sys.executable, str(script), str(folder), *map(str, paths)]
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=280)
    return {name: (folder / f"{name}.spv").read_bytes() for name in sources}


def stored_module(name: str) -> bytes:
    return (KERNELS / f"{name}.spv").read_bytes()


def cell(code: bytes, *, launches: int = 1, scratch: int = 0, operators: int = 1) -> tuple:
    counts = PlanCounts(launch_count=launches, scratch_count=scratch, reference_op_count=operators)
    return measures(inspect_spirv(code).kernels, counts).cell


@pytest.mark.parametrize(("name", "expected"), CELLS.items())
def test_known_kernels_have_their_cells(name: str, expected: tuple[int, int, int]) -> None:
    assert expected == cell(stored_module(name))


@pytest.mark.sycl
@pytest.mark.slow
def test_the_compiler_at_hand_gives_the_same_cells(built: dict[str, bytes]) -> None:
    assert {name: cell(built[name]) for name in CELLS} == CELLS


@pytest.mark.sycl
@pytest.mark.slow
def test_names_and_comments_change_nothing(built: dict[str, bytes]) -> None:
    assert cell(built[OTHER_WORDS]) == cell(built["row_per_item"]) == (0, 0, 0)


def test_fewer_passes_than_operators_is_fused() -> None:
    assert cell(stored_module("pointwise"), operators=3) == (1, 1, 0)


def test_launches_that_hand_data_on_are_global_synchronisation() -> None:
    assert cell(stored_module("pointwise"), launches=2, scratch=1) == (1, 0, 3)
    assert cell(stored_module("pointwise"), launches=2) == (1, 0, 0)


def test_every_level_has_its_reason() -> None:
    counts = PlanCounts(launch_count=1, scratch_count=0, reference_op_count=3)
    reasons = explain(inspect_spirv(stored_module("matmul_register_tile")).kernels, counts)

    starts = [reason.split(":")[0] for reason in reasons]
    assert starts == ["memory 3", "algorithm 3", "synchronization 1"]


def test_unreadable_objects_are_the_lowest_cell() -> None:
    assert cell(b"no module") == (0, 0, 0)


@pytest.mark.sycl
@pytest.mark.slow
def test_examples_are_where_they_claim_to_be(built: dict[str, bytes]) -> None:
    assert {name: cell(built[name]) for name in EXAMPLE_CELLS} == EXAMPLE_CELLS


def test_the_design_quotes_the_texts_of_the_levels() -> None:
    """Prompts, the rules here and docs/design.md mean the same levels."""
    text = (Path(__file__).parents[2] / "docs/design.md").read_text(encoding="utf-8")
    expected = [
        " | ".join([str(level), *(LEVEL_TEXTS[name][level] for name in DIMENSIONS)])
        for level in range(LEVELS)
    ]

    assert all(f"| {row.format(near='local')} |" in text for row in expected)
