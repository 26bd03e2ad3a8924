"""Whether errors of a reference's products show in its outputs: by the signs of their operands."""

import pytest

from evaluator_svc.judge.graph.cancelling_products import products_cancel
from tests.judge.judge_tasks import make_task, prepare


@pytest.mark.parametrize(
    ("forward", "inputs", "cancels"),
    [
        ("a @ b", "randn(8, 32), torch.randn(32, 8)", True),
        ("a @ b", "rand(8, 32), torch.randn(32, 8)", True),
        ("a @ b", "rand(8, 32), torch.rand(32, 8)", False),
        ("a.square() @ b.abs() + a", "randn(8, 8), torch.randn(8, 8)", False),
        ("(a @ b) + (a.abs() @ b.abs())", "randn(8, 8), torch.randn(8, 8)", False),
        ("torch.addmm(a, a.abs(), b.abs())", "randn(8, 8), torch.randn(8, 8)", False),
        (
            "nn.functional.scaled_dot_product_attention(a, b, b)",
            "randn(2, 2, 8, 8), torch.randn(2, 2, 8, 8)",
            True,
        ),
        ("a + b", "randn(8, 8), torch.randn(8, 8)", False),
    ],
)
def test_products_of_positive_numbers_do_not_cancel(
    forward: str, inputs: str, cancels: bool
) -> None:
    task = make_task(f"def forward(self, a, b):\n    return {forward}", inputs=f"[torch.{inputs}]")
    assert products_cancel(prepare(task).input_set(0)) is cancels
