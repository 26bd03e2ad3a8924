"""Integer inputs of any size that the reference takes, but for places, lengths and classes."""

from functools import partial

import pytest
import torch

from evaluator_svc.judge.admission.value_ranges import find_value_ranges
from evaluator_svc.judge.unusual_values.distributions import with_distribution
from evaluator_svc.judge.unusual_values.unusual_integers import unvaried_numbers
from evaluator_svc.judge.unusual_values.whole_numbers import large_integers
from kernel_foundry.domain.admission import Distribution
from kernel_foundry.domain.task import Task
from tests.judge.judge_tasks import TOLERANCE, prepare, task_of

IDS = "torch.randint(0, 1 << 20, (rows, cols))"
LARGE = Distribution.LARGE_INTEGERS


_task = partial(task_of, rows=20, cols=30)


def _is_found(task: Task) -> bool:
    ranges = next(iter(find_value_ranges([prepare(task)], TOLERANCE, 101).values()), ())
    return any(r.distribution is LARGE and r.is_binding for r in ranges)


@pytest.mark.parametrize(("dtype", "most"), [(torch.int32, 30), (torch.int64, 40)])
def test_sizes_are_all_between_the_usual_and_the_largest(dtype: torch.dtype, most: int) -> None:
    usual = torch.randint(0, 1 << 20, (200, 300), dtype=dtype)
    found = large_integers(usual)
    assert int(found.min()) >= 0
    assert 1 << (most - 1) < int(found.max()) < 1 << most
    bits = torch.frexp(found.double()).exponent
    assert all(int((bits == b).sum()) > 1000 for b in range(19, most - 1))
    assert bool((found % 2 == 1).any())
    signed = usual - (1 << 19)
    assert torch.equal(large_integers(signed).sign(), signed.sign())
    bytes_ = torch.randint(0, 256, (20, 30), dtype=torch.uint8)
    assert large_integers(bytes_) is bytes_
    small = torch.randint(-8, 8, (200, 300), dtype=torch.int8)
    found = large_integers(small)
    assert float(found.float().abs().mean()) > 50
    assert torch.equal(found == 0, small == 0)


def test_ids_and_sizes_are_larger_where_the_reference_takes_them() -> None:
    task = _task("x0 % x1", IDS, "torch.randint(1000, 60000, (cols,))")
    assert _is_found(task)
    ordinary = prepare(task).input_set(5)
    ids, sizes = with_distribution(prepare(task), ordinary, LARGE).inputs
    assert int(ids.max()) > 1 << 32
    assert int(ids.min()) < -(1 << 32)
    assert int(sizes.abs().min()) >= 1000
    assert int(sizes.max()) > 1 << 26


def test_they_keep_their_sign_where_the_reference_takes_no_other() -> None:
    task = _task("(1 + x0).double().log()", IDS)
    assert _is_found(task)
    (ids,) = with_distribution(prepare(task), prepare(task).input_set(5), LARGE).inputs
    assert int(ids.min()) >= 0


@pytest.mark.parametrize(
    ("result", "values", "least"),
    [
        ("torch.ldexp(torch.ones(rows, cols), x0)", "torch.randint(0, 9, (rows, cols))", 17),
        ("(x0 * 0.125).exp()", "torch.randint(0, 31, (rows, cols))", 100),
        ("(x0 * 0.125).exp()", "torch.randint(0, 31, (rows, cols)).float()", 100),
        ("(1 + x0).sqrt() * 1e37", "torch.randint(0, 31, (rows, cols))", 100),
    ],
    ids=["powers of two", "exponentials", "whole floats", "no signs"],
)
def test_what_overflows_meets_the_largest_that_do_not(result: str, values: str, least: int) -> None:
    task = _task(result, values)
    assert _is_found(task)
    prepared = prepare(task)
    for seed in (5, 6):
        changed = with_distribution(prepared, prepared.input_set(seed), LARGE)
        assert int(changed.inputs[0].max()) >= least
        assert (int(changed.inputs[0].min()) < 0) is ("sqrt" not in result)
        assert all(bool(output.isfinite().all()) for output in changed.expected())


@pytest.mark.parametrize(
    ("result", "values"),
    [
        ("torch.randn(1 << 20, generator=torch.Generator().manual_seed(1))[x0]", IDS),
        ("torch.arange(cols) < x0[:, None]", "torch.randint(1, cols + 1, (rows,))"),
        ("torch.where(x0 == 3, 2.5, 1.0)", "torch.randint(0, 200, (rows, cols))"),
        ("x0 * 2.5", "torch.randint(-1, 2, (rows, cols))"),
        ("x0.float().cumsum(-1)", f"torch.sort({IDS}).values"),
        ("torch.zeros(int(x0.max()) >> 10) + 1", IDS),
        ("x0 + 1", "torch.arange(rows * cols).mul(7919)"),
    ],
    ids=["indices", "lengths", "classes", "signs", "offsets", "a size", "constants"],
)
def test_what_integers_mean_is_kept(result: str, values: str) -> None:
    """An index beyond its table, or a length beyond its axis, is no input."""
    prepared = prepare(_task(result, values))
    ordinary = prepared.input_set(5)
    (found,) = with_distribution(prepared, ordinary, LARGE).inputs
    is_index = "manual_seed" in result  # on a CPU the reference raises
    assert torch.equal(found, ordinary.inputs[0]) is not is_index
    assert not _is_found(_task(result, values))


def test_hashed_indices_are_larger() -> None:
    result = "torch.arange(1000.0)[x0 % 1000]"
    assert _is_found(_task(result, IDS))


@pytest.mark.parametrize(
    ("result", "values"),
    [
        ("torch.sort(x0, dim=-1).values", "torch.randint(0, 20, (rows, cols), dtype=torch.int32)"),
        ("x0.int() @ x0.int().T", "torch.randint(-8, 8, (rows, cols), dtype=torch.int8)"),
        ("(x0 / 255.0).square()", "torch.randint(0, 256, (rows, cols)).float()"),
    ],
    ids=["scores", "bytes", "pixels"],
)
def test_few_values_that_stand_for_nothing_are_numbers(result: str, values: str) -> None:
    """However few there are: a kernel may not count them, nor read them from a table."""
    task = _task(result, values)
    assert _is_found(task)
    ordinary = prepare(task).input_set(5)
    (found,) = with_distribution(prepare(task), ordinary, LARGE).inputs
    (usual,) = ordinary.inputs
    assert float(found.double().max()) > 4 * float(usual.double().max())
    assert float(found.double().min()) < -float(usual.double().max())
    if found.is_floating_point():
        assert float((found != found.round()).float().mean()) > 0.9


def test_floats_that_are_places_or_masks_stay() -> None:
    values = "torch.randint(0, 20, (rows, cols)).float()"
    assert not _is_found(_task("torch.arange(20.0)[x0.long()]", values))
    assert not _is_found(_task("x0 * 2.5", values.replace("20", "2")))


def test_numbers_that_are_tried_in_no_other_size_are_named() -> None:
    ids, few = IDS, "torch.randint(0, 20, (rows, cols))"
    for result, values, is_tried, names in (
        ("x0 * 2.5 + x1", few, True, ()),
        ("(20 - x0).double().log() + x1", few, False, ("x0", "x1")),
        ("x0 * 2.5 + x1", f"torch.sort({few}).values", True, ("x0",)),
        ("torch.arange(40.0)[x0] + x1", few, True, ()),
        ("torch.where(x0 == 3, x1, 2)", few, True, ()),
        ("x0 + x1", "torch.randint(0, 256, (rows, cols), dtype=torch.uint8)", True, ()),
    ):
        prepared = prepare(_task(result, values, ids))
        assert unvaried_numbers(prepared, is_tried=is_tried) == names


def test_differences_of_integers_have_all_bits_but_one() -> None:
    task = _task("x0.amax(-1) - x0.amin(-1)", IDS)
    assert _is_found(task)
    (ids,) = with_distribution(prepare(task), prepare(task).input_set(5), LARGE).inputs
    assert 1 << 61 < int(ids.max()) < 1 << 62


@pytest.mark.parametrize(
    ("result", "base", "most_drawn", "least", "most"),
    [
        ("x0 ** x1", "torch.randn(rows, cols)", 4, -2, 7),
        ("x0 ** x1", "torch.randint(-3, 4, (rows, cols))", 4, 0, 7),
        ("torch.bitwise_left_shift(x0, x1)", IDS, 7, 0, 63),
    ],
)
def test_powers_and_shifts_are_zero_and_more_than_drawn(
    result: str, base: str, most_drawn: int, least: int, most: int
) -> None:
    task = _task(result, base, f"torch.randint(1, {most_drawn + 1}, (rows, cols))")
    assert _is_found(task)
    steps = with_distribution(prepare(task), prepare(task).input_set(5), LARGE).inputs[1]
    assert (int(steps.min()), int(steps.max())) == (least, most)
