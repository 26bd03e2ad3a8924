"""Indices are compared by what they look up: equal values in any order, and each one once."""

from collections.abc import Callable

import pytest
import torch

from evaluator_svc.judge import Judge
from evaluator_svc.judge.comparison.index_comparison import count_misplaced, placed_outputs
from evaluator_svc.judge.inputs.input_set import InputSet
from tests.judge.judge_tasks import RunnerSide, make_task, prepare

Drawn = Callable[..., RunnerSide]

TIED = "[torch.randint(0, 9, (rows, cols)).float()]"
"""Numbers of which many are equal in each row."""

ORDER = make_task("def forward(self, x):\n    return x.argsort(-1)", inputs=TIED)


def _input_set(body: str, *, inputs: str = TIED) -> InputSet:
    task = make_task(f"def forward(self, x):\n    {body}", inputs=inputs, rows=16, cols=64)
    prepared = prepare(task)
    return prepared.input_set(3)


def _misplaced(body: str, written: Callable[[torch.Tensor], torch.Tensor]) -> int | None:
    """Return how many of the indices that `written` gives for an input are wrong."""
    drawn = _input_set(body)
    *_, expected = drawn.run()
    last = len(drawn.run()) - 1
    found = count_misplaced(drawn, last, expected, [written(drawn.inputs[0]).to(expected.dtype)])
    return None if found is None else found[0]


def _last_first(x: torch.Tensor) -> torch.Tensor:
    """Return an order of rows in which equal numbers come from the last place to the first."""
    turned = x.flip(-1).argsort(dim=-1, stable=True)
    return x.shape[-1] - 1 - turned


def _named_twice(x: torch.Tensor) -> torch.Tensor:
    order = _last_first(x)
    again = x.gather(-1, order).diff(dim=-1) == 0
    order[:, 1:] = torch.where(again, order[:, :-1], order[:, 1:])
    return order


def _next_row(x: torch.Tensor) -> torch.Tensor:
    order = _last_first(x)
    order[0, 0] += x.shape[-1]
    return order


@pytest.mark.parametrize(
    ("body", "written"),
    [
        pytest.param("return x.argsort(-1)", _last_first, id="argsort"),
        pytest.param("return x.argsort(-1).int()", _last_first, id="a cast"),
        pytest.param(
            "return x.sort(0, descending=True)",
            lambda x: x.argsort(dim=0, descending=True, stable=True),
            id="another axis",
        ),
        pytest.param(
            "return x.sort(-1).indices[:, 5:20]", lambda x: _last_first(x)[:, 5:20], id="a part"
        ),
        pytest.param("return x.topk(9, largest=False)", lambda x: _last_first(x)[:, :9], id="few"),
        pytest.param("return x.flatten().argmin()", lambda x: _last_first(x.view(1, -1))[0, 0]),
        pytest.param("return x.min(-1, keepdim=True)", lambda x: _last_first(x)[:, :1], id="one"),
    ],
)
def test_equal_values_may_come_in_any_order(
    body: str, written: Callable[[torch.Tensor], torch.Tensor]
) -> None:
    assert _misplaced(body, written) == 0


@pytest.mark.parametrize(
    "written",
    [
        pytest.param(_named_twice, id="a place twice"),
        pytest.param(_next_row, id="beyond the row"),
        pytest.param(lambda x: _last_first(x) - x.shape[-1], id="from the end"),
        pytest.param(lambda x: _last_first(x).roll(1, 0), id="of another row"),
        pytest.param(torch.zeros_like, id="zeros"),
    ],
)
def test_what_is_no_permutation_of_a_row_is_wrong(
    written: Callable[[torch.Tensor], torch.Tensor],
) -> None:
    wrong = _misplaced("return x.argsort(-1)", written)
    assert wrong is not None
    assert wrong > 0


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("return x.argsort(dim=-1, stable=True)", id="a stable order"),
        pytest.param("return x.argsort(-1).argsort(-1) + 1", id="computed of places"),
        pytest.param("i = x.argsort(-1)\n    i += 1\n    return i", id="places that are moved"),
        pytest.param(
            "y = x.clone()\n    i = y.argsort(-1)\n    y.zero_()\n    return i", id="gone"
        ),
        pytest.param("return x.long().amax(-1)", id="no place"),
    ],
)
def test_other_whole_numbers_are_compared_as_they_are(body: str) -> None:
    assert _misplaced(body, _last_first) is None


def test_values_that_are_nearly_equal_may_change_places_where_they_are_computed() -> None:
    def forward(where: str) -> InputSet:
        near = "[torch.linspace(1.0, 1.0 + 2**-18, cols).repeat(rows, 1)]"
        return _input_set(f"return {where}.argsort(-1)", inputs=near)

    computed, moved = forward("(3.0 * x.exp()).log()"), forward("(-x)")
    for drawn, is_right in ((computed, True), (moved, False)):
        (expected,) = drawn.run()
        # Neighbours are less than one unit in the last place apart, or a few.
        turned = expected.view(-1, 2).flip(-1).reshape(expected.shape)
        (wrong,) = count_misplaced(drawn, 0, expected, [turned]) or (-1,)
        assert (wrong == 0) == is_right
    assert placed_outputs(computed).exact == frozenset()
    assert placed_outputs(moved).exact == {0}


def test_which_outputs_indices_have_a_part_in() -> None:
    body = "v, i = x.long().cummax(-1); return v, i, i + 1, x.argsort(-1), x.gather(1, i).long()"
    body += ", x.amax(-1).long(), x.max(-1).values.long(), v.zero_().add_(i)"
    assert placed_outputs(_input_set(body)).following == {0, 1, 2, 3, 4, 7}
    written = "both = torch.zeros(rows, 2); both[:, 0] = x.argmax(-1); return both.long(), x.long()"
    assert placed_outputs(_input_set(written)).following == {0}
    named = "best = x[0].argmax().item(); return torch.tensor([best]), x.long()"
    assert placed_outputs(_input_set(named)).following == {0, 1}


def test_a_verdict_takes_any_order_of_equal_numbers(judge: Judge, drawn: Drawn) -> None:
    runner = drawn(ORDER)
    runner.run(_last_first, "x")
    verdict = judge.verify(runner.draw.draw)
    assert not verdict.is_wrong
    assert verdict.correctness.mismatch_count == 0

    runner.run(_named_twice, "x")
    assert judge.verify(runner.draw.draw).is_wrong
