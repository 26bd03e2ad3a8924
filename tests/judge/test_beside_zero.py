"""Elements close to zero, for references that keep the digits of what is small."""

from collections.abc import Callable

import pytest
import torch

from evaluator_svc.judge.comparison.needed_factor import needed_factor
from evaluator_svc.judge.inputs.few_rows import few_rows
from evaluator_svc.judge.inputs.input_set import InputSet
from evaluator_svc.judge.inputs.prepared_workload import PreparedWorkload
from evaluator_svc.judge.tensors.relative_errors import largest_error
from evaluator_svc.judge.unusual_values.distributions import with_distribution
from evaluator_svc.judge.unusual_values.kept_digits import kept_sides
from kernel_foundry.domain.admission import Distribution
from tests.judge.judge_tasks import TOLERANCE, make_task, prepare, task_of

_BOTH = (1.0, -1.0)


def _beside(prepared: PreparedWorkload, seed: int = 5) -> InputSet:
    return with_distribution(prepared, prepared.input_set(seed), Distribution.BESIDE_ONE)


@pytest.mark.parametrize("result", ["x.expm1()", "torch.log1p(x) * 2", "x.sinh()"])
def test_what_is_added_to_one_is_small(result: str) -> None:
    task = make_task(f"\ndef forward(self, x):\n    return {result}\n", rows=64, cols=512)
    prepared = prepare(task)
    changed = with_distribution(prepared, prepared.input_set(5), Distribution.BESIDE_ONE)
    sizes = changed.inputs[0].abs().amax(-1)
    assert float(sizes.min()) <= 2.0**-20
    assert 2.0**-6 < float(sizes.max()) <= 2.0**-4


@pytest.mark.parametrize("seed", [5, 6])
@pytest.mark.parametrize("shape", ["rows, cols", "cols"])
def test_a_reference_with_both_logarithms_has_elements_close_to_one_too(
    shape: str, seed: int
) -> None:
    task = make_task(
        "\ndef forward(self, x):\n    return x.log(), torch.log1p(x)\n",
        rows=64,
        cols=512,
        inputs=f"[torch.rand({shape}) + 0.5]",
    )
    prepared = prepare(task)
    changed = with_distribution(prepared, prepared.input_set(seed), Distribution.BESIDE_ONE)
    x = changed.inputs[0].reshape(-1, 512)
    is_small, is_below = (x < 0.5).all(-1), ((x > 0.9) & (x < 1)).all(-1)
    is_above = (x > 1).all(-1)
    assert bool((is_small | is_below | is_above).all())
    found = [int(rows.count_nonzero()) for rows in (is_small, is_below, is_above)]
    assert found == ([32, 16, 16] if len(x) > 1 else [seed % 2, 1 - seed % 2, 0])


@pytest.mark.parametrize(
    ("result", "sides"),
    [
        ("x0.sinh()", {0: _BOTH}),
        ("x0.asinh() * 3", {0: _BOTH}),
        ("x0.atanh()", {0: _BOTH}),
        ("x0.log1p()", {0: _BOTH}),
        ("x0.expm1()", {0: (1.0,)}),
        ("nn.functional.elu(x0)", {}),
        ("x0.tanh()", {}),
        ("(x0.sinh(), x0.tanh())", {}),
        ("x0.exp() - 1.0", {}),
        ("x0 - x0.tanh()", {}),
        ("x0 * 2.0", {}),
        ("x0.relu()", {}),
        ("x0.cos()", {}),
        ("x0.sinh().sum(-1)", {}),
    ],
)
def test_a_trial_tells_what_keeps_digits(result: str, sides: dict[int, tuple[float, ...]]) -> None:
    assert prepare(task_of(result, "torch.randn(rows, cols)")).once(kept_sides) == sides


def test_each_input_is_asked_about_alone() -> None:
    rows = ("torch.randn(rows, cols)", "torch.rand(rows, cols)")
    assert prepare(task_of("x0.expm1() * x1", *rows)).once(kept_sides) == {0: (1.0,)}
    assert prepare(task_of("x0 * x1.tanh()", *rows)).once(kept_sides) == {}
    assert prepare(task_of("x0 * x1.sinh()", *rows)).once(kept_sides) == {1: (1.0,)}


@pytest.mark.parametrize(
    "shape", ["rows * cols", "rows, cols", "4, 4, 8, 24", "rows * cols // 3, 3"]
)
@pytest.mark.parametrize(
    ("result", "by_one"),
    [
        ("x0.sinh()", lambda x: 0.5 * (x.exp() - (-x).exp())),
        ("x0.asinh()", lambda x: (x.abs() + (x * x + 1.0).sqrt()).log().copysign(x)),
        ("x0.expm1()", lambda x: x.exp() - 1.0),
    ],
)
def test_what_goes_by_way_of_one_has_no_digits(
    shape: str, result: str, by_one: Callable[[torch.Tensor], torch.Tensor]
) -> None:
    changed = _beside(prepare(task_of(result, f"torch.randn({shape})")))
    (x,), (expected,) = changed.inputs, changed.expected()
    needed = needed_factor(changed, Distribution.BESIDE_ONE, TOLERANCE)
    assert needed is not None
    assert needed.factor == 4.0
    assert largest_error(by_one(x), expected) > 2 * needed.factor * TOLERANCE.rtol


def test_a_function_within_bounds_may_lose_what_is_small_beside_them() -> None:
    prepared = prepare(task_of("x0.tanh()", "torch.randn(rows, cols)"))
    ordinary = prepared.input_set(5)
    assert with_distribution(prepared, ordinary, Distribution.BESIDE_ONE) is ordinary


def test_trials_take_a_few_rows_of_all_inputs_that_have_as_many() -> None:
    rows = ("torch.randn(rows, cols)", "torch.rand(rows) < 0.5", "torch.randn(cols)")
    prepared = prepare(task_of("torch.where(x1[:, None], x0, x2)", *rows, rows=512))
    assert [len(tensor) for tensor in few_rows(prepared).inputs] == [85, 85, 48]


def test_trials_take_all_rows_where_the_reference_asks_for_them() -> None:
    prepared = prepare(task_of("x0.view(512, 24, 2)[..., 0]", "torch.randn(rows, cols)", rows=512))
    assert len(few_rows(prepared).inputs[0]) == 512
