"""A lesson about operators that a task has not is no lesson for it."""

import pytest

from generator_svc.experience.seeds import seed_lessons
from generator_svc.experience.structures import concerns, structures_of
from kernel_foundry.domain.admission import Admission, GraphNode
from kernel_foundry.domain.task import Tolerance
from tests.domain_values import H200, workload_admission


def _structures(*operators: str) -> frozenset[str]:
    graph = tuple(
        GraphNode(
            name=f"n{i}", op=f"aten.{op}.default", arguments=(), keywords=(), dtype="", shape=()
        )
        for i, op in enumerate(operators)
    )
    admission = Admission(
        task="",
        device=H200,
        workloads=(workload_admission(graph=graph),),
        tolerance=Tolerance(rtol=1e-4, atol=1e-5),
    )
    return structures_of(admission)


CROSS_ENTROPY = ("logsumexp", "gather", "mean", "sub")
LINEAR_NORM = ("linear", "gelu", "pow", "mean", "rsqrt", "mul")
ATTENTION = ("matmul", "_softmax", "matmul")


@pytest.mark.parametrize(
    ("operators", "found"),
    [
        (CROSS_ENTROPY, {"softmax"}),
        (LINEAR_NORM, {"product", "normalisation"}),
        (ATTENTION, {"product", "softmax", "attention"}),
        (("scaled_dot_product_attention",), {"product", "softmax", "attention"}),
        (
            ("convolution", "native_group_norm"),
            {"convolution", "product", "normalisation"},
        ),
        (("relu", "add"), set()),
    ],
)
def test_a_graph_has_structures(operators: tuple[str, ...], found: set[str]) -> None:
    assert _structures(*operators) == found


@pytest.mark.parametrize(
    ("beginning", "concerned"),
    [
        ("Attention writes the scores", {ATTENTION}),
        ("A float32 product on matrix units (TF32)", {LINEAR_NORM, ATTENTION}),
        ("A direct convolution", set()),
        ("A softmax needs two block-wide reductions", {CROSS_ENTROPY, ATTENTION}),
        ("A normalisation or softmax reads", {CROSS_ENTROPY, LINEAR_NORM, ATTENTION}),
        ("Neighbouring work-items touch", {CROSS_ENTROPY, LINEAR_NORM, ATTENTION}),
    ],
)
def test_a_lesson_of_the_package_concerns_what_it_is_about(
    beginning: str, concerned: set[tuple[str, ...]]
) -> None:
    found = [one for one in seed_lessons().values() if one.symptom.startswith(beginning)]
    assert found
    tasks = (CROSS_ENTROPY, LINEAR_NORM, ATTENTION)
    for lesson in found:
        assert {task for task in tasks if concerns(lesson, _structures(*task))} == concerned
