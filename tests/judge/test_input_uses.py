"""What a reference takes the whole numbers of its inputs for."""

import pytest

from evaluator_svc.judge.reference.input_uses import InputUses
from tests.judge.judge_tasks import make_task, prepare

PLACES = "torch.randint(0, 20, (rows,))"
VALUES = "torch.randint(0, 20, (rows, cols))"


def _uses(result: str, *inputs: str) -> InputUses:
    names = ", ".join(f"x{i}" for i in range(len(inputs)))
    forward = f"\ndef forward(self, {names}):\n    return {result}\n"
    task = make_task(forward, rows=20, cols=30, inputs=f"[{', '.join(inputs)}]")
    return prepare(task).input_uses


@pytest.mark.parametrize(
    "result",
    [
        "torch.arange(40.0)[x0 + 1]",
        "torch.arange(40.0).take(x0.float().long())",
        "torch.arange(cols) < x0[:, None]",
        "torch.where(x0 == 3, 1.0, 2.0)",
        "nn.functional.one_hot(x0, 20)",
        "torch.bincount(x0, minlength=20)[:20]",
        "torch.zeros(rows, 20).scatter_(1, x0[:, None], 1.0)",
        "torch.ones(rows) * x0.sum().item()",
        "torch.full((rows,), 1) << x0",
        "torch.arange(40.0)[torch.zeros(rows, 2).long().index_add(1, x0[:1] * 0, x0[:, None])]",
    ],
)
def test_what_says_where_or_which_is_a_place(result: str) -> None:
    assert _uses(result, PLACES).places == {0}


@pytest.mark.parametrize(
    "result",
    [
        "x0 * 2.5",
        "x0.float().softmax(-1)",
        "(x0 > 3) * 1.0",
        "(x0[:, :1] != x0).sum(-1)",
        "x0.sort(-1).values",
        "x0.gather(1, x0.argsort(-1))",
        "x0[:, torch.arange(4)]",
        "torch.cumsum(x0, -1) @ x0.T",
    ],
)
def test_what_is_computed_with_is_a_number(result: str) -> None:
    assert not _uses(result, VALUES).places


def test_what_is_written_into_a_part_is_followed_into_the_whole() -> None:
    body = """
def forward(self, x):
    places = torch.zeros(rows, 2, dtype=torch.int64)
    places[:, 1] = x
    return torch.arange(40.0)[places]
"""
    task = make_task(body, rows=20, inputs=f"[{PLACES}]")
    prepared = prepare(task)
    assert prepared.input_uses.places == {0}


def test_labels_of_a_loss_may_say_that_there_is_none() -> None:
    logits, labels = "torch.randn(rows, cols)", "torch.randint(0, cols, (rows,))"
    loss = "nn.functional.cross_entropy(x0, x1, ignore_index={})"
    for index in (-100, 5):
        uses = _uses(loss.format(index), logits, labels)
        assert uses.ignored == {1: index}
        assert uses.places == {1}
