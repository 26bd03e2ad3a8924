"""Which sizes of a task change: small ones, each side of a square, numbers without names."""

import textwrap

import pytest

from evaluator_svc.judge.admission.size_groups import SizeGroups, find_size_groups
from evaluator_svc.judge.admission.untried import untried_arguments
from evaluator_svc.sizes.generated_workloads import (
    further_numbers,
    generated_workload,
    generated_workloads,
)
from kernel_foundry.domain.task import Task
from tests.judge.judge_tasks import prepare

_SIZES = "batch = 8\nchannels = 64\nside = 32\n"


def _task(
    forward: str, inputs: str, *, init: str = "", body: str = "pass", given: str = ""
) -> Task:
    text = f"""
import torch
from torch import nn

{_SIZES}

class Model(nn.Module):
    def __init__(self, *sizes):
        super().__init__()
        {body}

    def forward(self, {given or "x"}):
        return {forward}

def get_inputs():
    return [{inputs}]

def get_init_inputs():
    return [{init}]
"""
    return Task(name="sized", reference=textwrap.dedent(text))


def _found(task: Task) -> SizeGroups:
    return find_size_groups(task, prepare(task))


def _keys(task: Task) -> list[tuple[str, ...]]:
    return [group.keys for group in _found(task).groups]


@pytest.mark.parametrize(
    ("task", "keys"),
    [
        pytest.param(
            _task("x.mean(-2)", "torch.randn(batch, side, side)"),
            [("channels",), ("batch",), ("side",), ("side#2",)],
            id="each side of a square, and a small batch",
        ),
        pytest.param(
            _task(
                "self.f(x)",
                "torch.randn(side, side)",
                init="side",
                body="self.f = nn.Linear(*2 * sizes)",
            ),
            [("channels",), ("side#1",), ("side",)],
            id="the side that weights have moves with them",
        ),
        pytest.param(
            _task("x @ y", "torch.randn(side, side), torch.randn(side, side)", given="x, y"),
            [("channels",), ("side",)],
            id="what several tensors have in common moves as one",
        ),
        pytest.param(
            _task(
                "self.f(x)", "torch.randn(48, 24)", init="24", body="self.f = nn.LayerNorm(sizes)"
            ),
            [("channels",), ("side",), ("get_inputs#1",), ("get_inputs#2", "get_init_inputs#1")],
            id="numbers without names",
        ),
        pytest.param(
            _task("x + torch.ones(24)", "torch.randn(48, 24)"),
            [("channels",), ("side",), ("get_inputs#1",)],
            id="what the module runs with at one value alone stays",
        ),
    ],
)
def test_what_moves(task: Task, keys: list[tuple[str, ...]]) -> None:
    assert sorted(_keys(task)) == sorted(keys)


def test_sizes_that_do_not_change_are_named() -> None:
    task = _task("x + torch.ones(24)", "torch.randn(48, 24)")
    item = prepare(task)
    (said, *_) = untried_arguments(task, find_size_groups(task, item), [item], [])
    assert "24 in get_inputs" in said


def test_how_often_an_input_is_drawn_is_no_size() -> None:
    twice = "*(torch.randn(batch, channels) for _ in range(2))"
    assert not _found(_task("x + y", twice, given="x, y")).fixed


@pytest.mark.parametrize(
    ("task", "is_named"),
    [
        (_task("x @ y", "torch.randn(side, side), torch.randn(side, side)", given="x, y"), True),
        (_task("x + y.sum(-1)", "torch.randn(side), torch.randn(side, 7)", given="x, y"), False),
    ],
)
def test_sides_that_need_not_be_equal_and_are_always_are_named(task: Task, is_named: bool) -> None:
    item = prepare(task)
    said = untried_arguments(task, find_size_groups(task, item), [item], [])
    assert any(s.startswith("side: sides of several") for s in said) is is_named


def test_rows_that_hold_each_number_twice_are_named() -> None:
    inputs = "torch.randn(batch, side), torch.randn(batch, side // 2).repeat(1, 2)"
    item = prepare(_task("x + y", inputs, given="x, y"))
    said = untried_arguments(item.task, SizeGroups(), [item], [])
    assert any(sentence.startswith("y: the two halves") for sentence in said)


@pytest.mark.parametrize(
    ("result", "inputs", "said"),
    [
        ("x.index_add(0, y, x)", "torch.randn(batch, side), torch.randperm(batch)", "y: no place"),
        (
            "x.log_softmax(-1) * y",
            "torch.randn(batch, side), torch.eye(side)[torch.randint(side, (batch,))]",
            "y: one element",
        ),
    ],
)
def test_places_that_come_once_and_classes_that_are_one_are_named(
    result: str, inputs: str, said: str
) -> None:
    item = prepare(_task(result, inputs, given="x, y"))
    found = untried_arguments(item.task, SizeGroups(), [item], [])
    assert any(sentence.startswith(said) for sentence in found), found


def test_divisors_are_kept_where_the_module_needs_them() -> None:
    task = _task("x.view(x.shape[0], 4, -1).sum(1)", "torch.randn(batch, channels)")
    by_key = {group.keys[0]: group.takes_odd for group in _found(task).groups}
    assert by_key == {"batch": True, "channels": False, "side": True}


def test_each_size_is_exceeded_and_each_is_odd_somewhere() -> None:
    task = _task("torch.relu(x)", "torch.randn(batch, channels, side, side)")
    found = _found(task)
    first, second = (ways[0] for ways in generated_workloads(found.groups))
    odd, larger = ({s.name: s.value for s in w.sizes} for w in (first, second))
    for group in found.groups:
        (key,) = group.keys
        assert odd[key] % 2 == 1
        assert max(odd[key], larger[key]) > group.value
    assert odd["side"] != odd["side#2"]
    assert generated_workload(task, first.name) == first


def test_numbers_among_the_arguments_change() -> None:
    inputs = "torch.randn(batch, side), torch.randn(batch, side), 0.25, 3, True"
    task = _task("x + share * y if flag else y * n", inputs, given="x, y, share, n, flag")
    item = prepare(task)
    found = find_size_groups(task, item)
    assert [(n.name, n.value) for n in found.numbers] == [
        ("forward.share/8", 5),
        ("forward.n", 4),
        ("forward.flag", 0),
    ]
    other = generated_workloads(found.groups, found.numbers)[0][0]
    changed = prepare(task, other)
    literals = {scalar.name: scalar.literal for scalar in changed.scalars}
    assert literals == {"share": "0.625", "n": "4", "flag": "False"}
    second = generated_workloads(found.groups, found.numbers, found.beyond)[1]
    numbers = [{s.name: s.value for s in w.sizes if s.name.startswith("forward.")} for w in second]
    share, near, n = {"forward.share/8": 12}, {"forward.share/64": 63}, {"forward.n": 8}
    # What does not run together is tried alone.
    assert numbers[:6] == [share | n, near | n, share, near, n, {}]


def test_numbers_among_the_arguments_go_as_far_as_outputs_stay_as_they_are() -> None:
    inputs = "torch.randn(batch, side), 0.25, 3, 2"
    task = _task("x.repeat(n, 1) ** p * share", inputs, given="x, share, p, n")
    found = _found(task)
    ways = further_numbers(found.groups, found.further)
    numbers = [{s.name: s.value for s in w.sizes if s.name.startswith("forward.")} for w in ways]
    share, near, p = {"forward.share/256": 255}, {"forward.share/64": 63}, {"forward.p": 48}
    assert numbers[:5] == [share | p, near | p, share, near, p]
    assert generated_workload(task, ways[0].name) == ways[0]
    assert {s.name: s.value for s in ways[0].sizes}["side"] > 32
    assert further_numbers(found.groups, ()) == ()


def test_numbers_that_stay_and_buffers_that_change_are_named() -> None:
    body = "self.norm = nn.BatchNorm1d(32)"
    task = _task("self.norm(x).sum(axis)", "torch.randn(batch, 32), 1", body=body, given="x, axis")
    item = prepare(task)
    said = untried_arguments(task, SizeGroups(), [item], [])
    assert any(sentence.startswith("axis: ") for sentence in said)
    assert any("norm.running_mean" in sentence for sentence in said)
