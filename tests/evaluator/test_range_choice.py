"""How many unusual values each timed workload is tried on, within what a verdict can spare."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

from evaluator_svc.devices.site import DeviceSite
from evaluator_svc.pipeline.correctness.range_choice import RangeChoice, of_mixed_rows
from kernel_foundry.domain.admission import (
    Admission,
    Distribution,
    NamedTensor,
    TensorRole,
    ValueRange,
    WorkloadAdmission,
)
from kernel_foundry.domain.task import Tolerance
from tests.domain_values import workload_admission
from tests.judge.judge_tasks import DEVICE

_RANGES = tuple(
    ValueRange(distribution=d, factor=4.0, is_binding=True)
    for d in Distribution
    if d not in (Distribution.DENORMAL, Distribution.NON_FINITE)
)[:16]
"""No task has all of them."""


def _workload(name: str, mib: int, *, held_out: bool = False) -> WorkloadAdmission:
    """Return a workload whose inputs and outputs have so many MiB together."""
    tensors = [
        NamedTensor(name=role.value, role=role, dtype="float32", shape=(mib << 17,))
        for role in (TensorRole.INPUT, TensorRole.OUTPUT)
    ]
    return workload_admission(name, held_out=held_out, tensors=tuple(tensors), value_ranges=_RANGES)


def _choice(*workloads: WorkloadAdmission, bound: tuple[str, ...] = ()) -> RangeChoice:
    admission = Admission(
        task="0" * 64,
        device=DEVICE,
        workloads=workloads,
        tolerance=Tolerance(rtol=1e-4, atol=1e-4),
    )
    site: Any = SimpleNamespace(shares_cores=True)
    return RangeChoice(admission, cast(DeviceSite, site), bound)


def test_small_workloads_are_tried_on_everything() -> None:
    odd, first, second = _workload("odd", 1, held_out=True), _workload("a", 4), _workload("b", 16)
    choice = _choice(first, second, odd)
    assert choice.least == "odd"
    assert all(choice.chosen(w, 7) == _RANGES for w in (odd, first, second))


def test_the_smallest_timed_one_shares_too_where_it_is_large() -> None:
    odd, large = _workload("odd", 1, held_out=True), _workload("a", 64)
    choice = _choice(large, odd)
    assert choice.chosen(odd, 7) == _RANGES
    assert len(choice.chosen(large, 7)) == 4


def test_a_secret_seed_decides_where_there_is_no_time_for_all() -> None:
    first, large = _workload("a", 4), _workload("b", 128)
    choice = _choice(first, large)
    assert choice.chosen(first, 7) == _RANGES
    assert len(choice.chosen(large, 7)) == 2
    assert choice.chosen(large, 7) == choice.chosen(large, 7)
    tried = {r.distribution for seed in range(100) for r in choice.chosen(large, seed)}
    assert tried == {r.distribution for r in _RANGES}


def test_the_others_share_what_there_is_and_each_is_tried() -> None:
    others = [_workload(f"w{index}", 4 + index) for index in range(1, 7)]
    choice = _choice(_workload("first", 4), *others)
    assert [choice.count(w) for w in others] == [2] * 6
    many = [_workload(f"w{index}", 4 + index) for index in range(1, 30)]
    assert {_choice(_workload("first", 4), *many).count(w) for w in many} == {1}


def test_however_large_a_workload_is_it_is_tried_on_one_and_rows_of_the_others() -> None:
    huge = _workload("huge", 512)
    choice = _choice(_workload("a", 4), huge)
    assert choice.count(huge) == 1
    assert choice.mixed(huge)
    assert _choice(huge).count(huge) == len(_RANGES)  # the smallest is always tried
    assert choice.chosen(replace(huge, value_ranges=()), 7) == ()


def test_a_workload_that_is_tried_on_some_meets_all_that_rows_can_tell_in_one_more_draw() -> None:
    odd, large = _workload("odd", 1, held_out=True), _workload("a", 64)
    choice = _choice(large, odd)
    assert choice.mixed(odd) == ()
    mixed = choice.mixed(large)
    assert {Distribution.LARGE, Distribution.NEGATIVE} < {r.distribution for r in mixed}
    assert choice.draws(large) == choice.count(large) + 1
    lenient = replace(mixed[1], factor=32.0, left_out=(1,))
    found = of_mixed_rows((mixed[0], lenient, *mixed[2:]))
    assert (found.factor, found.left_out, found.is_binding) == (32.0, (1,), True)


def test_a_large_smallest_one_shares_where_the_candidate_is_tried_on_all_elsewhere() -> None:
    huge = _workload("huge", 4096)
    quiet = ValueRange(distribution=Distribution.NON_FINITE, factor=1.0, is_binding=False)
    huge = replace(huge, value_ranges=(*huge.value_ranges, quiet))
    generated = replace(_workload("rows=31", 1, held_out=True), is_generated=True)
    assert _choice(huge, generated).chosen(huge, 7) == huge.value_ranges
    choice = _choice(huge, generated, bound=("rows=31",))
    chosen = choice.chosen(huge, 7)
    assert len(chosen) == 2
    assert chosen[-1] == quiet
    assert choice.mixed(huge)
    assert choice.chosen(generated, 7) == generated.value_ranges
    large = replace(huge, tensors=_workload("large", 1024).tensors)
    assert _choice(large, generated, bound=("rows=31",)).chosen(large, 7) == huge.value_ranges
    larger = replace(_workload("rows=999", 128, held_out=True), is_generated=True)
    assert _choice(huge, larger, bound=("rows=999",)).chosen(huge, 7) == huge.value_ranges
