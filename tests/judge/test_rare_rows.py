"""Draws with rows that none has by chance, on which a short cut of each kind is wrong."""

import dataclasses
from collections.abc import Sequence

import pytest
import torch

from evaluator_svc.judge.admission.value_ranges import find_value_ranges
from evaluator_svc.judge.reference.cut_operands import TF32_LOST_BITS, CutOperands
from evaluator_svc.judge.reference.integer_overflows import IntegerOverflows
from evaluator_svc.judge.tensors.scales import group_scale
from evaluator_svc.judge.tensors.structure import points_on, structures
from evaluator_svc.judge.timed_calls.exchangeable import is_exchangeable
from evaluator_svc.judge.unusual_values.distributions import with_distribution
from evaluator_svc.sizes.argument_numbers import changed_value, values_beyond, values_further
from kernel_foundry.domain.admission import Distribution
from kernel_foundry.domain.task import Size, Task, Tolerance
from tests.judge.judge_tasks import TOLERANCE, make_task, prepare

_FLOATS = "torch.randn(rows, cols)"
_MASK = "torch.rand(rows, cols) < 0.5"
_LENGTHS = "torch.randint(8, cols + 1, (rows,))"
_IDS = "torch.randint(0, 1 << 40, (rows, cols))"
_LINKS = (
    "torch.minimum(torch.arange(cols) + torch.randint(0, 9, (rows, cols)), torch.tensor(cols - 1))"
)
_TURNS = """
step = x0[:, 1:] - x0[:, :-1]
turns = step[:, 1:] * step[:, :-1] < 0
place = torch.arange(turns.shape[1])
return place - torch.where(turns, 0, place).cummax(-1).values
"""


def _task(body: str, *inputs: str, rows: int = 96, cols: int = 64, init: str = "") -> Task:
    names = "".join(f", x{i}" for i in range(len(inputs)))
    lines = body.strip().splitlines()
    lines[-1] = lines[-1] if lines[-1].startswith("return") else f"return {lines[-1]}"
    forward = f"\ndef forward(self{names}):\n" + "\n".join(f"    {line}" for line in lines)
    return make_task(init + forward + "\n", rows=rows, cols=cols, inputs=f"[{', '.join(inputs)}]")


def _drawn(
    task: Task, distribution: Distribution, seed: int = 5, tolerance: Tolerance = TOLERANCE
) -> tuple[torch.Tensor, ...]:
    """Return the inputs of a draw that binds candidates."""
    prepared = prepare(task)
    found = find_value_ranges([prepared], tolerance, 101)
    assert distribution in {r.distribution for rs in found.values() for r in rs if r.is_binding}
    return with_distribution(prepared, prepared.input_set(seed), distribution).inputs


def _repeats(rows: torch.Tensor) -> torch.Tensor:
    """Return of which period rows are; as many as columns: of none."""
    size = rows.shape[1]
    found = torch.full((len(rows),), size)
    for period in range(size - 1, 0, -1):
        found[(rows[:, period:] == rows[:, :-period]).all(-1)] = period
    return found


def test_rows_go_up_and_down_in_turn_for_long() -> None:
    task = _task(_TURNS, _FLOATS)
    (ordinary,) = prepare(task).input_set(5).inputs
    longest = [int(prepare(task).module.model(x).max()) for x in _drawn(task, Distribution.ORDERED)]
    assert max(longest) > 55
    assert int(prepare(task).module.model(ordinary).max()) < 24


def test_rows_of_whole_numbers_repeat_their_beginning() -> None:
    (x,) = _drawn(
        _task("x0.cumsum(-1)", "torch.randint(0, 99, (rows, cols))"), Distribution.ORDERED
    )
    assert any(1 < period <= 16 for period in _repeats(x[:48]).tolist())


@pytest.mark.parametrize("is_defined", [True, False])
def test_masks_keep_one_element_or_all_but_one(*, is_defined: bool) -> None:
    count = "(x1.sum(-1) - 1).clamp(min=1)" if is_defined else "(x1.sum(-1) - 1)"
    body = f"kept = torch.where(x1, x0, 0.0)\nreturn kept.square().sum(-1) / {count}"
    _, mask = _drawn(_task(body, _FLOATS, _MASK), Distribution.EXTREMES)
    counts = mask.sum(-1)
    assert bool((counts == 1).any()) is is_defined
    assert not is_defined or bool((counts == 63).any())


_MEANS = """
mask = torch.arange(x0.shape[1]) < x1[:, None]
return torch.where(mask, x0, 0.0).sum(-1) / {count}
"""


@pytest.mark.parametrize(
    ("count", "short"), [("(x1 + 1)", {0, 1}), ("x1", {1}), ("(x1 - 1).clamp(min=1)", {0, 1})]
)
def test_lengths_are_none_and_one_and_nothing_behind_an_end_is_a_number(
    count: str, short: set[int]
) -> None:
    task = _task(_MEANS.format(count=count), _FLOATS, _LENGTHS)
    x, lengths = _drawn(task, Distribution.PLACES)
    assert {n for n in lengths.tolist() if n < 8} == short
    is_behind = torch.arange(64) >= lengths[:, None]
    assert torch.equal(x.isnan(), is_behind)


def test_nothing_is_missing_where_the_reference_looks_behind_ends() -> None:
    body = "mask = torch.arange(x0.shape[1]) < x1[:, None]\nreturn (x0 * mask).sum(-1)"
    x, _ = _drawn(_task(body, _FLOATS, _LENGTHS), Distribution.PLACES)
    assert bool(x.isfinite().all())


@pytest.mark.parametrize("divisor", ["(x0.norm(dim=-1) * x1.norm(dim=-1))", "(x0 + x1).sum(-1)"])
def test_rows_are_those_of_another_input_negated_where_that_is_defined(divisor: str) -> None:
    task = _task(f"(x0 * x1).sum(-1) / {divisor}", _FLOATS, _FLOATS)
    one, two = _drawn(task, Distribution.ALIKE)
    opposite = int((one == -two).all(-1).count_nonzero())
    assert (opposite > 0) is ("norm" in divisor)


def _low_half(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a.int() == b.int()


def test_ids_differ_in_a_bit_of_either_half() -> None:
    task = _task("torch.where(x0 == x1, 0.0, x2)", _IDS, _IDS, _FLOATS, rows=256)
    one, two, _ = _drawn(task, Distribution.ALIKE)
    differs = one ^ two
    single = differs[(differs != 0) & (differs & (differs - 1) == 0)]
    assert single.numel() > 64
    assert not torch.equal(_low_half(one, two), one == two)


def test_floats_are_next_to_those_that_they_are_compared_with() -> None:
    task = _task("torch.where(x0 == x1, 0.0, x2)", _FLOATS, _FLOATS, _FLOATS)
    one, two, _ = _drawn(task, Distribution.BOUNDS)
    is_near = (one - two).abs() <= 2.5e-7 * one.abs()
    assert int((one == two).count_nonzero()) > 100
    assert int((is_near & (one != two)).count_nonzero()) > 20


def test_rows_that_are_compared_with_each_other_are_equal_or_in_another_order() -> None:
    body = "same = (x0[:, None] == x0[None]).all(-1)\nreturn torch.where(same, x1, 0.0).sum(-1)"
    ids, _ = _drawn(_task(body, _IDS, "torch.randn(rows)"), Distribution.ALIKE)
    is_same = (ids[:, None] == ids[None]).all(-1)
    in_order = ids.sort(-1).values
    is_anagram = (in_order[:, None] == in_order[None]).all(-1)
    assert int(is_same.count_nonzero()) > len(ids)
    assert int((is_anagram & ~is_same).count_nonzero()) > 4


def test_links_stay_behind_their_places_and_half_of_them_are_a_chain() -> None:
    task = _task("end = x0\nfor _ in range(7):\n    end = end.gather(1, end)\nreturn end", _LINKS)
    (ordinary,) = prepare(task).input_set(5).inputs
    assert points_on(ordinary)
    assert not is_exchangeable(ordinary)
    (links,) = _drawn(task, Distribution.PLACES)
    assert points_on(links)
    hops = (links == torch.arange(64) + 1).sum(-1)
    assert int(hops.min()) >= 30


_WARMTH = """
def __init__(self):
    super().__init__()
    self.warmth = nn.Parameter(torch.tensor(0.7))
"""


def test_a_parameter_of_one_number_has_either_sign_in_every_verdict() -> None:
    prepared = prepare(_task("torch.softmax(x0 * self.warmth, -1)", _FLOATS, init=_WARMTH))
    for seed in range(8):
        ordinary = prepared.input_set(seed)
        other, same = (
            with_distribution(prepared, ordinary, d).state["warmth"]
            for d in (Distribution.WEIGHTS, Distribution.WEIGHT_OUTLIERS)
        )
        usual = ordinary.state["warmth"]
        assert other < -16.0 * usual < 0.0 < 16.0 * usual < same


@pytest.mark.parametrize(
    ("result", "inputs"),
    [
        pytest.param("x0.amax(-1)", (_FLOATS,), id="largest"),
        pytest.param(
            "(x0[:, :, None] + x1[None]).amin(1)", (_FLOATS, "torch.randn(cols, 24)"), id="least"
        ),
        pytest.param(
            "torch.logaddexp(x0, x1)", (_FLOATS, _FLOATS), id="at one place of two inputs"
        ),
        pytest.param(
            "(x0[:, :, None] + x1[None]).amax(1)", (_FLOATS, "torch.randn(cols, 24)"), id="both"
        ),
    ],
)
def test_rows_and_results_are_infinite_where_nothing_is_added_up(
    result: str, inputs: tuple[str, ...]
) -> None:
    task = _task(result, *inputs)
    # What is the largest of some is held to the last bit.
    shares = (0.0,) if result == "x0.amax(-1)" else ()
    tolerance = dataclasses.replace(TOLERANCE, output_shares=shares)
    drawn = _drawn(task, Distribution.FAR, tolerance=tolerance)
    out = prepare(task).module.model(*drawn)
    infinity = torch.inf if "amin" in result else -torch.inf
    assert bool((drawn[0] == infinity).all(-1).any())
    assert bool((out == infinity).any())
    assert not bool(out.isnan().any())


_WINDOW_MEANS = "torch.nn.functional.avg_pool1d(x0, 9, 1)"


@pytest.mark.parametrize(
    "result", ["x0.sum(-1)", "x0.logsumexp(-1)", "x0.cumsum(-1)", _WINDOW_MEANS]
)
def test_results_stay_numbers_where_elements_are_added_up(result: str) -> None:
    task = _task(result, _FLOATS)
    prepared = prepare(task)
    drawn = with_distribution(prepared, prepared.input_set(5), Distribution.FAR)
    assert all(bool(out.isfinite().all()) for out in drawn.expected())


def test_an_infinity_is_no_scale_of_its_neighbours() -> None:
    rows = torch.randn(8, 32)
    usual = group_scale(rows.clone())
    rows[3, 5] = -torch.inf
    assert torch.allclose(group_scale(rows), usual, rtol=0.5)


@pytest.mark.parametrize(("other", "is_over"), [(6, True), (0, True), (12, False)])
def test_a_divisor_below_zero_is_the_end_of_its_type(other: int, *, is_over: bool) -> None:
    least = 9 if other == 12 else torch.iinfo(torch.int64).min
    with IntegerOverflows() as overflows:
        torch.gcd(torch.tensor([least]), torch.tensor([other]))
    assert overflows.found is is_over


@pytest.mark.parametrize(
    ("rows", "cols", "is_known"), [(64, 3, True), (4, 5, True), (1, 8, True), (2, 4, False)]
)
def test_short_rows_are_known_to_be_in_order_if_there_are_many(
    rows: int, cols: int, *, is_known: bool
) -> None:
    in_order = torch.randn(rows, cols).sort(-1).values
    assert ("rising" in structures(in_order)) is is_known


def test_a_matrix_that_is_added_to_a_product_is_not_cut() -> None:
    fine, added = torch.full((2, 2), 1.0 + 2**-11), torch.full((2, 2), 2**-20 + 2**-40)
    with CutOperands(TF32_LOST_BITS):
        product = torch.addmm(added, torch.zeros(2, 2), fine)
        cut = torch.addmm(torch.zeros(2, 2), torch.eye(2), fine)
    assert torch.equal(product, added)
    assert torch.equal(cut, torch.ones(2, 2))


def test_whole_numbers_among_arguments_become_much_larger_and_truths_do_not() -> None:
    assert _values(values_beyond("power", 3)) == [("forward.power", 8)]
    assert _values(values_further("power", 3)) == [("forward.power", 48)]
    assert _values(values_beyond("width", 2.5)) == [
        ("forward.width/8", 80),
        ("forward.width/8", 40),
    ]
    assert _values(values_further("width", 2.5))[0] == ("forward.width/8", 320)
    for values in (values_beyond, values_further):
        assert values("none", float("inf")) == values("none", float("nan")) == ()
        assert (values("is_on", value=True), values("axis", -1)) == ((), ())
    assert (values_further("axis", 0), values_further("steps", 31)) == ((), ())


def test_shares_among_arguments_come_next_to_one() -> None:
    assert _values(values_beyond("rate", 0.5)) == [("forward.rate/8", 12), ("forward.rate/64", 63)]
    (next_to_one, near) = values_further("rate", 0.5)
    assert changed_value("rate", 0.5, [next_to_one]) == 255 / 256
    assert changed_value("rate", 0.5, [near]) == 63 / 64
    assert changed_value("rat", 0.5, [near]) == 0.5


def _values(sizes: Sequence[Size]) -> list[tuple[str, int]]:
    return [(size.name, size.value) for size in sizes]


def test_columns_are_far_as_a_whole() -> None:
    """What is looked for across rows begins at minus infinity, and at nothing less far."""
    (x,) = _drawn(_task("x0.unflatten(0, (4, -1)).amax(1)", _FLOATS), Distribution.COLUMNS)
    tops = x.amax(0)
    assert x.is_contiguous()
    assert bool((tops < -12000).any())
    assert bool((tops == -torch.inf).any())
    (x,) = _drawn(_task("x0.unflatten(0, (4, -1)).amax(1)", _FLOATS), Distribution.FAR)
    assert bool((x.amax(0) > 0).all())


def test_half_of_the_samples_are_far_as_a_whole() -> None:
    task = _task("x0.amax((1, 2, 3))", "torch.randn(rows, 4, 8, cols)", rows=32, cols=16)
    (x,) = _drawn(task, Distribution.COLUMNS)
    tops = x.amax((1, 2, 3))
    assert bool((tops[:16] < -12000).any())
    assert bool((tops[16:] > 0).all())


_CARRIED = """
own = torch.arange(x0.shape[0])[:, None]
last = torch.where(x1, own, -1).cummax(0).values
return torch.where(last >= 0, x0.gather(0, last.clamp(min=0)), 0.0)
"""


def test_columns_of_masks_keep_all_or_nothing_or_begin_with_a_run() -> None:
    _, mask = _drawn(_task(_CARRIED, _FLOATS, _MASK), Distribution.COLUMNS)
    counts = mask.sum(0)
    assert {0, 96} <= set(counts.tolist())
    assert bool((mask[:24].sum(0) == 0)[counts > 0].any())


def test_a_mask_of_one_axis_has_runs() -> None:
    """And counts that no index has a part in are held to them, whatever ties there are."""
    body = "own = torch.arange(len(x0))\nreturn own - torch.where(x0, own, 0).cummax(0).values"
    task = _task(body, "torch.rand(1024) < 0.2")
    (mask,) = _drawn(task, Distribution.EXTREMES)
    assert int(prepare(task).module.model(mask).max()) > 200
    assert int(prepare(task).module.model(*prepare(task).input_set(5).inputs).max()) < 100


def test_places_of_padding_are_met() -> None:
    """Also where no place of the table is named twice, as by chance in a large one."""
    bag = "torch.nn.functional.embedding_bag(x0, x1, padding_idx=3)"
    task = _task(bag, "torch.randint(0, 3000, (rows, 8))", "torch.randn(3000, 4)")
    places, _ = _drawn(task, Distribution.EXTREMES)
    assert 0.05 < float((places == 3).double().mean()) < 0.2


def _collisions(keys: torch.Tensor, rows: torch.Tensor) -> int:
    """Return how many pairs of rows have one key and are not the same."""
    is_same = (rows[:, None] == rows[None]).all(-1)
    return int(((keys[:, None] == keys[None]) & ~is_same).count_nonzero()) // 2


_PLACE = torch.arange(1, 65)


@pytest.mark.parametrize(
    "weights", [_PLACE**0, _PLACE, 7919 * _PLACE**3 + 104729 * _PLACE + 1, _PLACE**5]
)
def test_rows_that_are_not_the_same_have_one_weighted_sum(weights: torch.Tensor) -> None:
    body = "same = (x0[:, None] == x0[None]).all(-1)\nreturn torch.where(same, x1, 0.0).sum(-1)"
    ids, _ = _drawn(_task(body, _IDS, "torch.randn(rows)", rows=512), Distribution.ALIKE)
    assert _collisions((ids * weights).sum(-1), ids) >= 1
    if bool((weights == 1).all()):
        assert _collisions(ids.sort(-1).values.mul(weights.cumsum(0)).sum(-1), ids) >= 5
        keys = ids[:, 0]
        for column in ids[:, 1:].unbind(-1):
            keys = keys ^ column
        assert _collisions(keys, ids) >= 10


@pytest.mark.parametrize("kind", ["torch.int8", "torch.uint8", "torch.bool", "torch.float32"])
def test_rows_of_any_type_differ_in_two_elements_that_change_places(kind: str) -> None:
    low = -9 if kind == "torch.int8" else 0
    numbers = f"torch.randint({low}, {2 if 'bool' in kind else 20}, (rows, cols)).to({kind})"
    one, two = _drawn(_task("(x0 != x1).sum(-1)", numbers, numbers, rows=256), Distribution.ALIKE)
    differs = (one != two).sum(-1) == 2
    is_anagram = (one.sort(-1).values == two.sort(-1).values).all(-1)
    assert int((differs & is_anagram).count_nonzero()) >= 3
