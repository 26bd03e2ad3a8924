"""What inputs become on other distributions and after a change in place; what is left alone."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import nn

from evaluator_svc.judge import Judge
from evaluator_svc.judge.admission.value_ranges import find_value_ranges
from evaluator_svc.judge.draws.input_change import (
    InputChange,
    changed,
    choose_places,
    replacements,
)
from evaluator_svc.judge.tensors.equal_parts import EqualParts, equal_parts
from evaluator_svc.judge.tensors.structure import is_structured, structures
from evaluator_svc.judge.unusual_values.changed_values import CHANGES, few, large, outliers
from evaluator_svc.judge.unusual_values.distributions import with_distribution
from evaluator_svc.messages.distribution_traits import Trait, with_trait
from kernel_foundry.domain.admission import Distribution, ValueRange
from kernel_foundry.domain.check import CheckResult
from kernel_foundry.domain.task import Size, Task, Tolerance
from tests.judge.judge_tasks import (
    PEAKS,
    SCALED,
    SOFTMAX,
    TOLERANCE,
    RunnerSide,
    make_task,
    prepare,
)

_LOGARITHM = """
def forward(self, x):
    return torch.log(x)
"""
_LARGEST = """
def forward(self, x):
    return torch.argmax(x, dim=-1)
"""

_OF_OTHERS = (
    Distribution.LARGE_INTEGERS,
    Distribution.BLOCKS,
    Distribution.ALIKE,
    Distribution.DENSE,
    Distribution.EXTREMES,
    Distribution.NEAR_ONE,
    Distribution.NEAR_ZERO,
    Distribution.ABSOLUTE,
    Distribution.CLOSE,
    Distribution.HUGE,
    Distribution.TINY,
    Distribution.FAR,
    Distribution.PLACES,
    Distribution.LEVEL,
    Distribution.SMALL,
    Distribution.BOUNDS,
    Distribution.BESIDE_ONE,
    Distribution.LASTING_WEIGHTS,
    Distribution.COLUMNS,
)
"""Of inputs that are bound in some way or have a certain size, and of references that iterate."""
_OF_INPUTS = [d for d in Distribution if "weight" not in d.value and d not in _OF_OTHERS]


def _found(task: Task, tolerance: Tolerance = TOLERANCE) -> dict[Distribution, bool]:
    found = find_value_ranges([prepare(task)], tolerance, 101)
    ranges = next(iter(found.values()), ())
    return {value_range.distribution: value_range.is_binding for value_range in ranges}


def test_a_defined_reference_binds_on_all_but_denormals_and_nan() -> None:
    assert _found(make_task(SOFTMAX)) == {
        Distribution.LARGE: True,
        Distribution.OFFSET: True,
        Distribution.ZEROS: True,
        Distribution.SPARSE: True,
        Distribution.DENORMAL: False,
        Distribution.NON_FINITE: False,
        Distribution.MAGNITUDES: True,
        Distribution.INTEGERS: True,
        Distribution.POWERS: True,
        Distribution.OUTLIERS: True,
        Distribution.FEW: True,
        Distribution.NEGATIVE: True,
        Distribution.FAR: True,
        Distribution.ORDERED: True,
        Distribution.COLUMNS: True,
    }


def test_a_reference_that_is_not_finite_there_is_left_out() -> None:
    """The logarithm of zero is none; large inputs keep the sign that the domain has."""
    task = make_task(_LOGARITHM, inputs="[torch.rand(rows, cols) + 0.1]")
    found = _found(task)
    assert Distribution.ZEROS not in found
    assert Distribution.SPARSE not in found
    assert found[Distribution.LARGE]


def test_an_index_is_bound_by_equal_values_as_by_others() -> None:
    """Whichever of several maxima it names."""
    found = _found(make_task(_LARGEST))
    for distribution in (Distribution.LARGE, Distribution.ZEROS, Distribution.SPARSE):
        assert found[distribution]


def test_equal_values_bind_no_index_where_rounding_tells_them_apart() -> None:
    found = _found(make_task("def forward(self, x):\n    return (x @ x.T).exp().argmax(-1)"))
    assert not found.get(Distribution.ZEROS)


_STEP = """
def forward(self, x):
    return (x >= 0).int()
"""
_STEP_BESIDE_NAN = """
def forward(self, x):
    return torch.round(x / x.abs().amax(-1, keepdim=True) * 127).to(torch.int8)
"""


def test_what_is_only_compared_binds_on_equal_values_too() -> None:
    """Zeros are not negative, whoever looks; 0/0 as a whole number is anything."""
    found = _found(make_task(_STEP))
    for distribution in (Distribution.ZEROS, Distribution.SPARSE, Distribution.POWERS):
        assert found[distribution]
    assert not _found(make_task(_STEP_BESIDE_NAN)).get(Distribution.ZEROS)


@pytest.mark.parametrize(
    ("result", "is_by_element"),
    [
        ("torch.relu(x) * 2.0", True),
        ("(x[:, :, None] - x[:, None]) ** 2", False),
        ("x[:, 1:] - x[:, :-1]", False),
        ("x.cumsum(-1)", False),
        ("x.flip(-1) * x", False),
    ],
)
def test_what_is_about_lines_is_nothing_to_single_elements(
    result: str, *, is_by_element: bool
) -> None:
    found = _found(make_task(f"def forward(self, x):\n    return {result}"))
    of_lines = set(with_trait(Trait.OF_LINES))
    assert of_lines.isdisjoint(found) is is_by_element
    assert (of_lines <= found.keys()) is not is_by_element
    assert found[Distribution.FAR]
    assert found[Distribution.INTEGERS]  # where functions have steps
    assert found[Distribution.FEW]


@pytest.mark.parametrize(("function", "is_sum"), [(torch.relu, False), (torch.cumsum, True)])
def test_few_terms_tell_of_precision_where_there_are_sums(
    judge: Judge, function: Callable[..., torch.Tensor], *, is_sum: bool
) -> None:
    axis = (-1,) if is_sum else ()
    task = make_task(f"def forward(self, x):\n    return torch.{function.__name__}(x, *{axis})")
    few_terms = ValueRange(distribution=Distribution.FEW, factor=1.0, is_binding=True)
    name, which = task.workloads[0].name, (few_terms.distribution,)
    drawn, descriptors = judge.draw(task, name, TOLERANCE, (11,), which)
    RunnerSide(judge, drawn, descriptors).run(lambda x: function(x, *axis), "x")
    (verdict,) = judge.verify_ranges(drawn.draw, (few_terms,)).verdicts
    judge.release(drawn.draw)
    assert verdict.check.result is CheckResult.PASSED
    assert (verdict.audit is not None) is is_sum


def test_rows_lie_below_zero_near_and_far() -> None:
    prepared = prepare(make_task(SOFTMAX, rows=256, cols=512))
    (x,) = with_distribution(prepared, prepared.input_set(5), Distribution.NEGATIVE).inputs
    assert bool((x < 0).all())
    largest = x.amax(-1)
    assert float(largest.max()) > -4
    assert float(largest.min()) < -120  # of which an exponential leaves nothing
    half = torch.where(torch.rand(64, 64) < 0.5, 0.0, torch.randn(64, 64))
    assert torch.equal(CHANGES[Distribution.NEGATIVE](half) == 0, half == 0)


def test_large_inputs_have_the_other_sign_where_that_is_defined() -> None:
    prepared = prepare(make_task(SOFTMAX))
    ordinary = prepared.input_set(5)
    (found,) = with_distribution(prepared, ordinary, Distribution.LARGE).inputs
    times = found / ordinary.inputs[0]
    assert float(times.min()) > -128.1
    assert float(times.max()) == -64.0


def test_large_rows_alternate_so_that_a_sample_does_not_tell_their_size() -> None:
    """Of each row an eighth, at even distances, and nothing that would show it to be one."""
    x = torch.randn(256, 4096)
    found = large(x, sign=1.0)
    size = found.square().mean(-1).sqrt()
    for length in (1, 4, 16, 64):
        is_taken = torch.arange(4096) % (8 * length) < length
        sampled = found[:, is_taken].square().mean(-1).sqrt()
        is_missed = (sampled / size - 1).abs() > 0.1
        is_usual = found.abs().amax(-1) < 7.0 * sampled
        assert float((is_missed & is_usual).float().mean()) > 0.05
    matrix = x[:, :256] + x[:, :256].T
    assert torch.equal(large(matrix, sign=1.0), 64.0 * matrix)


def test_one_element_of_each_row_stands_out() -> None:
    """At places of its own in each, for a sample to miss; what was zero stays zero."""
    prepared = prepare(make_task(SOFTMAX, rows=256, cols=512))
    ordinary = prepared.input_set(5)
    (x,) = ordinary.inputs
    (unusual,) = with_distribution(prepared, ordinary, Distribution.OUTLIERS).inputs
    differs = unusual != x
    assert differs.sum(-1).tolist() == [1] * 256
    assert not differs[:, 0].any()
    assert len(set(differs.int().argmax(-1).tolist())) > 100
    sizes = unusual[differs].abs()
    assert 7.5 < float(sizes.min()) < 16
    assert 128 < float(sizes.max()) < 260
    assert bool((unusual[differs] > 0).any() and (unusual[differs] < 0).any())
    half = torch.where(torch.rand(64, 64) < 0.5, 0.0, torch.randn(64, 64))
    assert torch.equal(outliers(half, any_sign=True) == 0, half == 0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float8_e4m3fn, torch.float8_e5m2])
def test_narrow_formats_hold_what_stands_out(dtype: torch.dtype) -> None:
    x = torch.randn(32, 64).to(dtype)
    unusual = outliers(x, any_sign=False).float()
    assert bool(unusual.isfinite().all())
    assert float(unusual.abs().max()) > float(x.float().abs().max())
    assert int((few(x).float() != 0).sum()) <= 2 * 32


def test_few_elements_stay_of_one_of_the_largest_inputs() -> None:
    inputs = "[torch.randn(rows, cols), torch.randn(rows, cols), torch.randn(cols)]"
    prepared = prepare(
        make_task("\ndef forward(self, x, y, z):\n    return x * y + z\n", inputs=inputs)
    )
    changed_ones = set()
    for seed in (4, 5):
        ordinary = prepared.input_set(seed)
        inputs = with_distribution(prepared, ordinary, Distribution.FEW).inputs
        (place,) = (i for i, x in enumerate(inputs) if x is not ordinary.inputs[i])
        x = inputs[place]
        assert 1 <= int((x != 0).sum(-1).min()) <= int((x != 0).sum(-1).max()) <= 2
        assert float(x[-1, -1]) != 0
        assert not x[:, 0].any()  # about which an honest kernel may take differences
        changed_ones.add(place)
    assert changed_ones == {0, 1}


def test_every_timed_workload_has_the_ranges_of_the_smallest_with_wider_factors() -> None:
    task = make_task(SOFTMAX)
    (workload,) = task.workloads
    sizes = {"small": 8, "large": 128, "larger": 256}
    task = replace(
        task,
        workloads=tuple(
            replace(workload, name=name, sizes=(Size(name="rows", value=rows),))
            for name, rows in sizes.items()
        ),
    )
    prepared = [prepare(task, w) for w in task.workloads]
    found = find_value_ranges(prepared, TOLERANCE, 101)
    binding = {r.distribution: 2 * r.factor for r in found["small"] if r.is_binding}
    for name in ("large", "larger"):
        assert {r.distribution: r.factor for r in found[name]} == binding
        assert all(r.is_binding for r in found[name])


def test_inputs_and_parameters_have_distributions_of_their_own() -> None:
    prepared = prepare(make_task(SCALED))
    ordinary = prepared.input_set(5)
    for distribution in (d for d in Distribution if d not in _OF_OTHERS):
        other = with_distribution(prepared, ordinary, distribution)
        of_weights = "weight" in distribution.value
        for path, tensor in ordinary.state.items():
            assert torch.equal(other.state[path], tensor) is not of_weights
        is_mixed = distribution is Distribution.SIGNS  # a normal distribution has both signs
        assert torch.equal(other.inputs[0], ordinary.inputs[0]) is (is_mixed or of_weights)


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("with_parameters", [False, True])
def test_few_elements_change_to_those_of_another_draw(
    is_sparse: bool, with_parameters: bool
) -> None:
    prepared = prepare(make_task(SCALED, rows=64, cols=128))
    before, other = prepared.input_set(5), prepared.input_set(6)
    change = InputChange(other_seed=6, is_sparse=is_sparse, with_parameters=with_parameters)
    after = changed(before, replacements(choose_places(before, change), other))
    differs = after.inputs[0] != before.inputs[0]
    assert 0 < int(differs.sum()) <= (16 if is_sparse else 128)
    assert torch.equal(after.inputs[0][differs], other.inputs[0][differs])
    is_changed = any(after.state[p] is not tensor for p, tensor in before.state.items())
    assert is_changed == with_parameters
    again = changed(before, replacements(choose_places(before, change), other))
    assert torch.equal(again.inputs[0], after.inputs[0])


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("parts", EqualParts)
def test_what_a_table_holds_twice_changes_in_few_places_alike(
    parts: EqualParts, is_sparse: bool
) -> None:
    twice = ".repeat(1, 2)" if parts is EqualParts.HALVES else ".repeat_interleave(2, -1)"
    inputs = f"[torch.randn(rows, cols // 2){twice}]"
    result = "\ndef forward(self, x):\n    return x * 2\n"
    prepared = prepare(make_task(result, inputs=inputs, rows=64, cols=128))
    before, other = prepared.input_set(5), prepared.input_set(6)
    change = InputChange(other_seed=6, is_sparse=is_sparse, with_parameters=False)
    (after,) = changed(before, replacements(choose_places(before, change), other)).inputs
    assert equal_parts(after) is parts
    differs = after != before.inputs[0]
    assert 0 < int(differs.sum()) <= (32 if is_sparse else 128)
    assert torch.equal(after[differs], other.inputs[0][differs])


_STRUCTURED = {
    "labels": "(torch.rand(rows, cols) > 0.3).float()",
    "falling": "(torch.arange(cols) < torch.randint(1, cols, (rows, 1))).float()",
    "shares": "torch.softmax(torch.randn(rows, cols), dim=-1)",
    "rising": "torch.sort(torch.randn(rows, cols), dim=-1).values",
}


@pytest.mark.parametrize("structure", _STRUCTURED)
def test_no_range_breaks_a_structure(structure: str) -> None:
    """A kernel may take a mask for 0 or 1, and search in what is sorted."""
    inputs = f"[torch.randn(rows, cols), {_STRUCTURED[structure]}]"
    prepared = prepare(make_task("\ndef forward(self, x, y):\n    return x * y\n", inputs=inputs))
    ordinary = prepared.input_set(5)
    assert structure in structures(ordinary.inputs[1])
    for distribution in _OF_INPUTS:
        changed_inputs = with_distribution(prepared, ordinary, distribution).inputs
        assert structure in structures(changed_inputs[1])
        is_mixed = distribution is Distribution.SIGNS
        assert torch.equal(changed_inputs[0], ordinary.inputs[0]) is is_mixed


def test_tables_keep_their_pattern() -> None:
    """The halves of a table of cosines are alike, and a kernel may read one of them."""
    table = "torch.cos(torch.arange(cols) % (cols // 2)).repeat(rows, 1)"
    inputs = f"[torch.randn(rows, cols), {table}]"
    prepared = prepare(make_task("\ndef forward(self, x, y):\n    return x * y\n", inputs=inputs))
    sparse = with_distribution(prepared, prepared.input_set(5), Distribution.SPARSE)
    assert torch.equal(*sparse.inputs[1].chunk(2, dim=-1))
    assert bool((sparse.inputs[0] == 0).any())


@pytest.mark.parametrize("structure", ["equal halves", "equal pairs"])
def test_what_a_table_holds_twice_changes_alike(structure: str) -> None:
    """Rotary tables hold each number twice, and a kernel may read one of the two."""
    twice = ".repeat(1, 2)" if structure == "equal halves" else ".repeat_interleave(2, -1)"
    inputs = f"[torch.randn(rows, cols), torch.randn(rows, cols // 2){twice}]"
    prepared = prepare(make_task("\ndef forward(self, x, y):\n    return x * y\n", inputs=inputs))
    ordinary = prepared.input_set(5)
    assert structures(ordinary.inputs[1]) == {structure}
    changed_inputs = [with_distribution(prepared, ordinary, d).inputs for d in _OF_INPUTS]
    for table in (table.nan_to_num() for _, table in changed_inputs):
        left, right = table[:, ::2], table[:, 1::2]
        both = table.chunk(2, dim=-1) if structure == "equal halves" else (left, right)
        assert torch.equal(*both)
    is_new = [not torch.equal(table, ordinary.inputs[1]) for _, table in changed_inputs]
    assert sum(is_new) >= len(_OF_INPUTS) - 2  # signs stay, and FEW changes one input alone


def test_values_stay_distinct_where_an_index_is_asked_for() -> None:
    """Fewer mantissas are more maxima, of which a kernel may name another."""
    prepared = prepare(make_task(_LARGEST))
    told, ordinary = prepared.input_set(5, is_telling=True), prepared.input_set(5)
    assert torch.equal(told.inputs[0], ordinary.inputs[0])

    beside = "def forward(self, x):\n    return x.square().mean(-1), x.argmax(-1)"
    inputs = "[1 + torch.rand(rows, cols) / 1024]"
    for seed in range(4):
        prepared = prepare(make_task(beside, inputs=inputs, rows=64, cols=2048))
        (told,) = prepared.input_set(seed, is_telling=True).inputs
        errors = told.half().float() - told
        assert bool((errors <= 0).all()) or bool((errors >= 0).all())
        for rows in (told, told.T):
            ordered = rows.sort(-1).values
            is_whole = ordered.view(torch.int32) % (1 << 13) == 0
            assert not ((ordered.diff(dim=-1) == 0) & ~is_whole[:, 1:]).any()


@pytest.mark.parametrize("falls", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
def test_what_is_in_order_gets_uneven_distances_and_stays_in_order(
    dtype: torch.dtype, *, falls: bool
) -> None:
    borders = torch.rand(3, 4096).sort(descending=falls).values.to(dtype)
    changed = CHANGES[Distribution.MAGNITUDES](borders)
    assert structures(borders) <= structures(changed)
    assert torch.equal(changed[:, [0, -1]], borders[:, [0, -1]])
    steps = changed.double().diff().abs()
    # Where a border would be by the ends of its row, it is not, by thousands of places.
    even = torch.linspace(0, 1, 4096)
    share = (changed[:, :1] - changed).double().abs() / steps.sum(-1, keepdim=True)
    least = 0.1 if dtype is torch.float16 else 0.2
    assert float((share - even).abs().amax(-1).min()) > least
    if dtype is not torch.float16:
        distinct = (borders.diff() != 0).sum()
        assert int((changed.diff() != 0).sum()) >= 0.99 * int(distinct)


def test_places_among_borders_are_held_where_borders_are_uneven() -> None:
    task = make_task(
        "def forward(self, x, border):\n    return torch.searchsorted(border, x)",
        inputs="[torch.rand(rows * cols), torch.rand(4099).sort().values]",
        rows=256,
        cols=256,
    )
    prepared = prepare(task)
    found = find_value_ranges([prepared], TOLERANCE, 101)[task.workloads[0].name]
    assert Distribution.MAGNITUDES in {r.distribution for r in found if r.is_binding}


def test_a_structure_is_left_whole() -> None:
    square = torch.randn(32, 32)
    assert is_structured(square + square.T)
    assert is_structured(torch.sort(torch.rand(4, 50)).values)
    assert is_structured(torch.randperm(40))
    assert is_structured(torch.arange(50) < torch.tensor([[50], [7], [50]]))
    assert is_structured(nn.functional.one_hot(torch.randint(0, 9, (20,)), 9).float())
    assert not is_structured(torch.randint(0, 2, (4, 50)).float())
    assert not is_structured(torch.rand(4, 50) > 0.5)
    assert not is_structured(square)
    assert not is_structured(torch.randint(0, 9, (4, 50)))
    assert not is_structured(torch.full((4, 50), 0.5))


_CHANCES = """
def forward(self, x):
    return nn.functional.binary_cross_entropy(x, 0.3 + 0.4 * x, reduction="none")
"""
_LOOKED_UP = """
def forward(self, x):
    return torch.linspace(0.0, 1.0, 9, device=x.device)[(x * 8).long()] + x
"""


@pytest.mark.parametrize("forward", [_CHANCES, _LOOKED_UP])
def test_a_reference_that_asserts_on_unusual_values_is_judged_without_them(
    judge: Judge, forward: str
) -> None:
    """A GPU's own assertion would end the judge: such values never get there."""
    task = make_task(forward, inputs="[torch.rand(rows, cols)]")
    admission = judge.admit(task, PEAKS)
    assert judge.is_sound()
    found = {r.distribution for w in admission.workloads for r in w.value_ranges}
    assert Distribution.LARGE not in found
    assert Distribution.OFFSET not in found


_MOMENTS = """
def forward(self, x):
    return x.mean(-1), x.var(-1, unbiased=False)
"""


@pytest.mark.parametrize("distribution", [Distribution.OUTLIERS, Distribution.FEW])
def test_moments_about_the_first_element_are_honest(distribution: Distribution) -> None:
    """In float32: what stands out in a row is never what differences are taken from."""
    prepared = prepare(make_task(_MOMENTS, rows=512, cols=1024))
    (ranges,) = find_value_ranges([prepared], TOLERANCE, 101).values()
    (factor,) = (r.factor for r in ranges if r.distribution is distribution)
    for seed in (5, 6, 7):
        unusual = with_distribution(prepared, prepared.input_set(seed), distribution)
        (x,) = unusual.inputs
        differences = x - x[:, :1]
        mean = differences.mean(-1)
        found = (x[:, 0] + mean, differences.square().mean(-1) - mean.square())
        for actual, exact in zip(found, unusual.run(dtype=torch.float64), strict=True):
            # In units of what is allowed, and far from it.
            error = (actual - exact).abs() / (exact.abs() + exact.square().mean().sqrt())
            assert float(error.max()) < factor * TOLERANCE.rtol / 2


_MASKED = """
def forward(self, x, mask):
    return torch.where(mask, x, 0.0).sum(-1)
"""
_LENGTHS = """
def forward(self, x, lengths):
    keeps = torch.arange(x.shape[1]) < lengths[:, None]
    return (x * keeps).sum(-1) / lengths.clamp(min=1)
"""
_ADDED = """
def forward(self, x, index):
    return torch.zeros(8, x.shape[1]).index_add(0, index, x)
"""


def test_what_a_mask_leaves_out_is_no_number_and_may_be_a_run() -> None:
    inputs = "[torch.randn(rows, cols), torch.rand(rows, cols) < 0.5]"
    prepared = prepare(make_task(_MASKED, inputs=inputs, rows=64, cols=64))
    x, mask = with_distribution(prepared, prepared.input_set(5), Distribution.EXTREMES).inputs
    assert torch.equal(x.isnan(), ~mask)
    begins_late = (mask.int().argmax(-1) > 16) & mask.any(-1)
    assert int(begins_late.count_nonzero()) >= 2


def test_minus_infinity_is_tried_where_the_reference_gives_numbers() -> None:
    prepared = prepare(make_task(SOFTMAX, rows=64, cols=64))
    (x,) = with_distribution(prepared, prepared.input_set(5), Distribution.FAR).inputs
    assert bool((x == -torch.inf).any())
    large = x[x.isfinite() & (x.abs() > 100)]
    assert bool((large % 128 == 0).all())  # no rounding decides exponentials of their differences
    prepared = prepare(make_task(_LARGEST, rows=64, cols=64))
    (x,) = with_distribution(prepared, prepared.input_set(5), Distribution.FAR).inputs
    assert bool((x.amax(-1) < -10000).any())
    assert bool((x.amin(-1) > 10000).any())


def test_a_mask_that_no_draw_changes_has_its_rows_in_another_order() -> None:
    masked = "\ndef forward(self, x, mask):\n    return torch.where(mask, x, 0.0).sum(-1)\n"
    inputs = "[torch.randn(rows, cols), torch.ones(rows, cols, dtype=torch.bool).tril()]"
    prepared = prepare(make_task(masked, inputs=inputs, rows=64, cols=64))
    ordinary = prepared.input_set(5)
    x, mask = with_distribution(prepared, ordinary, Distribution.EXTREMES).inputs
    assert bool(x.isfinite().all())  # what a triangle leaves out may be multiplied by zero
    assert not torch.equal(mask, ordinary.inputs[1])
    assert sorted(mask.sum(-1).tolist()) == list(range(1, 65))
    constant = replace(prepared.task, constants=("mask",))
    kept = prepare(constant)
    assert with_distribution(kept, ordinary, Distribution.EXTREMES) is ordinary


def test_lengths_are_none_and_all() -> None:
    inputs = "[torch.randn(rows, cols), torch.randint(1, cols, (rows,))]"
    prepared = prepare(make_task(_LENGTHS, inputs=inputs, rows=64, cols=64))
    _, lengths = with_distribution(prepared, prepared.input_set(5), Distribution.PLACES).inputs
    for count in (lengths == 0, lengths == 64):
        assert bool(count.any())
    assert int(lengths.max()) == 64  # beyond the row a kernel may read what is not its own


def test_most_places_are_one() -> None:
    inputs = "[torch.randn(rows, cols), torch.randint(0, 8, (rows,))]"
    prepared = prepare(make_task(_ADDED, inputs=inputs, rows=64, cols=64))
    _, index = with_distribution(prepared, prepared.input_set(5), Distribution.PLACES).inputs
    assert int(index.bincount().max()) > 30


def test_inputs_change_alone_where_one_of_them_overflows() -> None:
    forward = (
        "\ndef forward(self, x, y):\n    return torch.softmax(x, -1) * torch.exp(-y.abs() * y)\n"
    )
    values = "torch.randn(rows, cols)"
    task = make_task(forward, rows=64, cols=48, inputs=f"[{values}, {values}]")
    assert _found(task)[Distribution.LARGE]
    prepared = prepare(task)
    for seed in (5, 6):
        ordinary = prepared.input_set(seed)
        x, y = with_distribution(prepared, ordinary, Distribution.LARGE).inputs
        assert x is not ordinary.inputs[0]
        assert y is ordinary.inputs[1]


def test_each_of_two_inputs_changes_under_some_seed_where_both_cannot() -> None:
    forward = "\ndef forward(self, x, y):\n    return torch.exp(x.tanh() * 60 + y.tanh() * 60)\n"
    positive = "torch.rand(rows, cols) / 8"
    task = make_task(forward, rows=64, cols=48, inputs=f"[{positive}, {positive}]")
    prepared = prepare(task)
    changed = []
    for seed in (4, 5):
        ordinary = prepared.input_set(seed)
        found = with_distribution(prepared, ordinary, Distribution.OFFSET).inputs
        changed.append([a is not b for a, b in zip(found, ordinary.inputs, strict=True)])
    assert sorted(changed) == [[False, True], [True, False]]


def test_negative_numbers_are_beside_whole_ones_where_no_others_give_numbers() -> None:
    inputs = "[torch.rand(rows, cols) + 0.25, torch.randn(rows, cols)]"
    task = make_task("def forward(self, x, y):\n    return torch.pow(x, y)", inputs=inputs)
    found = find_value_ranges([prepare(task)], TOLERANCE, 101)[task.workloads[0].name]
    assert any(r.distribution is Distribution.ABSOLUTE and r.is_binding for r in found)
    changed = with_distribution(prepare(task), prepare(task).input_set(5), Distribution.ABSOLUTE)
    x, y = changed.inputs
    assert 0.3 < float((x < 0).float().mean()) < 0.7
    assert set(y.unique().tolist()) == {-2.0, -1.0, 0.0, 1.0, 2.0, 3.0}
    (powers,) = changed.expected()
    assert bool(powers.isfinite().all())
    for result in ("x.sqrt() * y", "x.log() + y", "x * y.exp()"):
        task = make_task(f"def forward(self, x, y):\n    return {result}", inputs=inputs)
        ordinary = prepare(task).input_set(5)
        changed = with_distribution(prepare(task), ordinary, Distribution.ABSOLUTE)
        assert all(map(torch.equal, changed.inputs, ordinary.inputs))
