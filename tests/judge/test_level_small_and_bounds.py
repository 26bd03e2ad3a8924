"""Draws of one value a row, of small rows and variances, and of the reference's own bounds."""

from collections.abc import Callable

import pytest
import torch

from evaluator_svc.judge.comparison.needed_factor import needed_factor
from evaluator_svc.judge.reference.integer_overflows import IntegerOverflows
from evaluator_svc.judge.unusual_values.distributions import with_distribution
from kernel_foundry.domain.admission import Distribution
from kernel_foundry.domain.task import Task
from tests.judge.judge_tasks import TOLERANCE, make_task, prepare, task_of

_ROWS = "torch.randn(rows, cols)"
_CUBES = "torch.randn(rows, 6, cols)"


def _drawn(task: Task, distribution: Distribution, seed: int = 5) -> tuple[torch.Tensor, ...]:
    prepared = prepare(task)
    return with_distribution(prepared, prepared.input_set(seed), distribution).inputs


def _is_changed(task: Task, distribution: Distribution) -> bool:
    prepared = prepare(task)
    ordinary = prepared.input_set(5)
    return with_distribution(prepared, ordinary, distribution) is not ordinary


def test_some_rows_are_of_one_value_where_the_reference_divides() -> None:
    (x,) = _drawn(task_of("x0.std(-1)", _ROWS), Distribution.LEVEL)
    is_level = (x == x[:, :1]).all(-1)
    assert int(is_level.count_nonzero()) == 8
    assert len(x[is_level, 0].unique()) == 8
    one_pass = x.square().sum(-1) - x.sum(-1).square() / 48
    assert bool(one_pass[is_level].sqrt().isnan().any())
    assert not bool(one_pass[~is_level].sqrt().isnan().any())


def test_some_samples_are_level_as_a_whole_and_others_row_by_row() -> None:
    (x,) = _drawn(
        task_of("nn.functional.layer_norm(x0, x0.shape[-1:])", _CUBES), Distribution.LEVEL
    )
    is_level = (x == x[..., :1]).all(-1)
    assert int(is_level.all(-1).count_nonzero()) == 8
    is_whole = (x == x[:, :1, :1]).flatten(1).all(-1)
    assert int(is_whole.count_nonzero()) == 4


def test_columns_are_level_where_the_reference_goes_down_them() -> None:
    task = task_of("x0.std(0)", _ROWS)
    (down,), (along,) = (_drawn(task, Distribution.LEVEL, seed) for seed in (5, 6))
    assert int((down == down[:1]).all(0).count_nonzero()) == 6
    assert int((along == along[:, :1]).all(-1).count_nonzero()) == 8


@pytest.mark.parametrize(
    ("result", "is_tried"),
    [
        ("torch.softmax(x0, -1)", False),  # nothing is less than zero there
        ("x0 @ x0.T", False),
        ("(x0 - x0.mean(-1, keepdim=True)) / x0.std(-1, keepdim=True)", False),  # zero by zero
        ("x0.var(-1)", True),
    ],
)
def test_level_rows_are_tried_where_the_reference_gives_numbers(
    result: str, is_tried: bool
) -> None:
    assert _is_changed(task_of(result, _ROWS), Distribution.LEVEL) is is_tried


@pytest.mark.parametrize(
    ("result", "is_tried"),
    [
        ("nn.functional.normalize(x0, dim=-1)", True),
        ("nn.functional.layer_norm(x0, x0.shape[-1:])", True),
        ("x0.std(-1)", False),  # as small as the rows are
        ("torch.tanh(x0) / 3", False),
    ],
)
def test_rows_are_small_where_results_are_not(result: str, is_tried: bool) -> None:
    assert _is_changed(task_of(result, _ROWS), Distribution.SMALL) is is_tried


def test_a_small_number_shows_beside_small_rows() -> None:
    prepared = prepare(task_of("nn.functional.normalize(x0, dim=-1)", _ROWS))
    changed = with_distribution(prepared, prepared.input_set(5), Distribution.SMALL)
    needed = needed_factor(changed, Distribution.SMALL, TOLERANCE)
    assert needed is not None
    (x,), (expected,) = changed.inputs, changed.expected()
    allowed = TOLERANCE.rtol * needed.factor
    added = x / (x.norm(dim=-1, keepdim=True) + 1e-6)
    assert bool(((added - expected).abs() > 10 * allowed).any())


def test_variances_are_small_and_zero() -> None:
    task = make_task(
        "\ndef __init__(self):\n    super().__init__()\n    self.norm = nn.BatchNorm1d(64)\n"
        "\ndef forward(self, x):\n    return self.norm(x)\n",
        rows=32,
        cols=64,
        inputs="[torch.randn(rows, cols)]",
    )
    prepared = prepare(task)
    state = with_distribution(prepared, prepared.input_set(5), Distribution.SMALL).state
    variance = state["norm.running_var"]
    assert bool((variance == 0).any())
    assert bool((variance[variance > 0] < 1e-4).any())
    assert bool((variance >= 0).all())


def test_elements_are_at_the_bounds_beside_them_and_beyond() -> None:
    (x,) = _drawn(
        task_of("x0.sigmoid().mul(x0).clamp(-60000.0, 60000.0)", _ROWS), Distribution.BOUNDS
    )
    assert {-60000.0, 60000.0, 75000.0} <= set(x.flatten().tolist())
    assert bool(((x > 59999.9) & (x < 60000.0)).any())
    (x,) = _drawn(
        task_of("torch.histc(x0, 8, 0.0, 1.0)", "torch.rand(rows, cols)"), Distribution.BOUNDS
    )
    assert bool((x == 1.0).any())
    assert bool((x > 0.0).all())
    assert not _is_changed(task_of("x0 * 60000.0", _ROWS), Distribution.BOUNDS)


_SURPRISE = "-x0.clamp(min=1e-6).log()"


@pytest.mark.parametrize(
    ("result", "is_tried"),
    [
        (_SURPRISE, True),
        ("x0.log().sum(-1)", False),
        ("x0.log1p()", True),
        ("x0 * 2", False),
    ],
)
def test_elements_are_beside_one_where_each_has_a_logarithm(result: str, is_tried: bool) -> None:
    """Beside zero where it is that of one and more."""
    assert (
        _is_changed(task_of(result, "torch.rand(rows, cols)"), Distribution.BESIDE_ONE) is is_tried
    )


def test_a_logarithm_that_cancels_shows_beside_one() -> None:
    prepared = prepare(task_of(_SURPRISE, "torch.rand(rows, cols)"))
    changed = with_distribution(prepared, prepared.input_set(5), Distribution.BESIDE_ONE)
    (x,), (expected,) = changed.inputs, changed.expected()
    assert bool((x < 1).all())
    needed = needed_factor(changed, Distribution.BESIDE_ONE, TOLERANCE)
    assert needed is not None
    allowed = TOLERANCE.rtol * needed.factor
    mantissa, exponent = torch.frexp(x)
    s = (2 * mantissa - 1) / (2 * mantissa + 1)
    terms = sum(s.square() ** n / (2 * n + 1) for n in range(7))
    split = -((exponent - 1) * 0.69314718 + 2 * s * terms)
    scale = expected.square().mean(-1, keepdim=True).sqrt() + expected.abs()
    assert bool(((-x.log() - expected).abs() <= allowed * scale).all())
    assert bool(((split - expected).abs() > 10 * allowed * scale).any())


def test_elements_are_above_one_where_ordinary_ones_are() -> None:
    (x,) = _drawn(task_of("x0.log()", "torch.rand(rows, cols) + 0.5"), Distribution.BESIDE_ONE)
    is_above = (x > 1).all(-1)
    assert int(is_above.count_nonzero()) == len(x) // 2
    assert float((x - 1).abs().amax(-1).min()) < 2**-18


def test_labels_of_a_loss_may_be_shares() -> None:
    loss = "nn.functional.binary_cross_entropy_with_logits(x0, x1, reduction='none').mean(-1)"
    labels = "torch.randint(0, 2, (rows, cols)).float()"
    _, y = _drawn(task_of(loss, _ROWS, labels), Distribution.EXTREMES)
    is_soft = (y > 0) & (y < 1)
    assert 0.4 < float(is_soft.float().mean()) < 0.6
    _, y = _drawn(task_of("(x0 * x1).sum(-1)", _ROWS, labels), Distribution.EXTREMES)
    assert set(y.unique().tolist()) == {0.0, 1.0}


def test_zeros_have_signs_where_the_reference_asks_for_them() -> None:
    _, y = _drawn(task_of("torch.copysign(x0, x1)", _ROWS, _ROWS), Distribution.SPARSE)
    zeros = y[y == 0]
    assert 0.4 < float(zeros.signbit().float().mean()) < 0.6
    y, _ = _drawn(task_of("torch.atan2(x0, x1)", _ROWS, _ROWS), Distribution.SPARSE)
    assert 0.4 < float(y[y == 0].signbit().float().mean()) < 0.6
    _, y = _drawn(task_of("x0 * x1", _ROWS, _ROWS), Distribution.SPARSE)
    assert not bool(y[y == 0].signbit().any())


def test_rows_are_beyond_any_stand_in_for_infinity_where_no_size_counts() -> None:
    (x,) = _drawn(task_of("x0.sort(-1).values", _ROWS), Distribution.FAR)
    assert bool(x[x.isfinite()].abs().max() > 1e9)
    assert bool((x.amax(-1) < -1e30).any())  # what a maximum may begin at
    # What would be infinite where rows are added up is less large.
    (x,) = _drawn(task_of("x0.sort(-1).values.square().sum(-1).sqrt()", _ROWS), Distribution.FAR)
    assert not bool((x[x.isfinite()].abs() > 1e20).any())
    (x,) = _drawn(task_of("x0.amax(-1).exp().log()", _ROWS), Distribution.FAR)
    assert not bool((x[x.isfinite()].abs() > 1e9).any())


@pytest.mark.parametrize(
    ("compute", "is_lost"),
    [
        (lambda x: x + x, True),
        (lambda x: (x.long() + x.long()) // 2, False),
        (lambda x: (x.long() + x.long()).int(), True),
        (lambda x: x % 1000, False),
        (lambda x: x << 3, True),
        (lambda x: x ^ 3, False),
        (lambda x: x.sum(), False),
        (lambda x: x.sum(dtype=torch.int32), True),
    ],
)
def test_bits_that_a_type_does_not_hold_are_found(
    compute: Callable[[torch.Tensor], torch.Tensor], is_lost: bool
) -> None:
    x = torch.tensor([2**31 - 1, 2**31 - 5], dtype=torch.int32)
    with IntegerOverflows() as overflows:
        compute(x)
    assert overflows.found is is_lost


@pytest.mark.parametrize(
    ("result", "least"),
    [
        ("nn.functional.normalize(x0, dim=-1)", 1e-12),
        ("nn.functional.normalize(x0, dim=-1, eps=1e-8)", 1e-8),
        ("x0 / x0.norm(dim=-1, keepdim=True).clamp(min=1e-10)", 1e-10),
    ],
)
def test_small_rows_are_below_what_the_reference_cuts_off_at(result: str, least: float) -> None:
    prepared = prepare(make_task(_body(result), inputs=f"[{_ROWS}]", rows=512, cols=64))
    changed = with_distribution(prepared, prepared.input_set(5), Distribution.SMALL)
    lengths = changed.inputs[0].norm(dim=-1)
    assert int((lengths < least).count_nonzero()) >= 2
    assert int(((lengths > least) & (lengths < 2.0**-4)).count_nonzero()) >= 16
    assert needed_factor(changed, Distribution.SMALL, TOLERANCE) is not None


def _body(result: str) -> str:
    return f"def forward(self, x0):\n    return {result}"
