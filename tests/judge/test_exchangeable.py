"""Which integers, labels and masks change places between calls, and which have an order."""

from collections.abc import Callable

import pytest
import torch

from evaluator_svc.judge.inputs.prepared_workload import PreparedWorkload
from evaluator_svc.judge.memory.host_memory import HostMemory
from evaluator_svc.judge.timed_calls.call_inputs import (
    CallValues,
    redrawn_tensors,
    with_call_values,
)
from evaluator_svc.judge.timed_calls.exchangeable import is_exchangeable
from tests.judge.judge_tasks import make_task, prepare

Make = Callable[[], torch.Tensor]


def _rows_of_choices() -> torch.Tensor:
    return torch.stack([torch.randperm(64)[:8] for _ in range(128)])


def _segments() -> torch.Tensor:
    return torch.randint(0, 16, (4096,)).sort().values.flip(0).roll(1000)


def _in_blocks() -> torch.Tensor:
    return torch.randint(0, 2, (16, 16)).bool().repeat_interleave(8, 0).repeat_interleave(8, 1)


DRAWN: dict[str, Make] = {
    "codes": lambda: torch.randint(0, 200_000, (32, 512), dtype=torch.int32),
    "codes_of_few_rows": lambda: torch.randint(0, 200_000, (3, 1001), dtype=torch.int32),
    "one_long_row": lambda: torch.randint(0, 50_000, (300_000,)),
    "wide": lambda: torch.randint(0, 2**40, (64, 64)),
    "labels": lambda: torch.randint(0, 10, (256,)),
    "quantised": lambda: torch.randint(-128, 128, (256, 256), dtype=torch.int8),
    "mask": lambda: torch.rand(64, 64) < 0.3,
    "sparse_mask": lambda: torch.rand(4, 128, 128) < 0.01,
    "tokens": lambda: torch.randint(0, 32_000, (8, 128)),
    "labels_as_floats": lambda: torch.randint(0, 2, (32, 100)).float(),
}
ORDERED: dict[str, Make] = {
    "offsets": lambda: torch.arange(0, 4097, 64),
    "few": lambda: torch.tensor([3, 1, 2, 5]),
    "positions": lambda: torch.arange(128).repeat(8, 1),
    "permutation": lambda: torch.randperm(5000),
    "choices_in_each_row": _rows_of_choices,
    "segments": _segments,
    "sorted_in_parts": lambda: torch.randint(0, 1000, (64, 64)).sort(-1).values.reshape(-1),
    "causal_mask": lambda: torch.ones(64, 64).tril().bool(),
    "mask_of_lengths": lambda: torch.arange(128) < torch.randint(1, 128, (32, 1)),
    "padded": lambda: torch.where(torch.rand(64, 64) < 0.2, -1, torch.randint(0, 99, (64, 64))),
    "one_of_several": lambda: torch.nn.functional.one_hot(torch.randint(0, 10, (256,)), 10),
    "two_of_several": lambda: torch.rand(64, 16).argsort(-1) < 2,
    "columns_of_their_own": lambda: torch.stack(
        [torch.randint(0, 1000, (500,)), torch.randint(0, 600, (500,))], dim=1
    ),
    "first_is_always_there": lambda: torch.cat(
        [torch.ones(64, 1).bool(), torch.rand(64, 63) < 0.5], dim=1
    ),
    "graph_with_loops": lambda: (torch.rand(64, 64) < 0.2) | torch.eye(64).bool(),
    "blocks": _in_blocks,
    "constant": lambda: torch.full((100,), 7),
    "infinite_mask": lambda: torch.where(torch.rand(64, 64) < 0.5, -float("inf"), 0.0),
    "rising_rows": lambda: torch.arange(100)[:, None] * 4 + torch.randint(0, 4, (100, 50)),
}


@pytest.mark.parametrize("name", DRAWN)
def test_what_is_drawn_one_by_one_changes_places(name: str) -> None:
    torch.manual_seed(1)
    assert is_exchangeable(DRAWN[name]())


@pytest.mark.parametrize("name", ORDERED)
def test_what_has_an_order_stays(name: str) -> None:
    for seed in range(3):
        torch.manual_seed(seed)
        assert not is_exchangeable(ORDERED[name]())


_TWO = """
def forward(self, first, second):
    return first * 0.5 + second
"""
_CODES = "torch.randint(0, 99, (rows, cols))"


def _prepared(inputs: str) -> PreparedWorkload:
    task = make_task(_TWO, inputs=inputs)
    return prepare(task)


@pytest.mark.parametrize(
    ("inputs", "redrawn_as"),
    [
        (f"[{_CODES}, {_CODES}]", ("int64", "int64")),
        (f"[{_CODES}, torch.randn(rows, cols)]", ("int64", "float32")),
        ("[torch.rand(rows, cols) < 0.5, torch.randn(rows, cols)]", ("int8", "float32")),
        ("[torch.randint(0, 3, (rows, cols)).float(), torch.randn(cols)]", ("int32", "float32")),
        (f"[{_CODES}, torch.arange(cols)]", ("", "")),
        ("[torch.arange(cols), torch.randn(cols)]", ("", "float32")),
    ],
)
def test_integers_change_places_unless_one_of_them_has_an_order(
    inputs: str, redrawn_as: tuple[str, ...]
) -> None:
    assert redrawn_tensors(_prepared(inputs), HostMemory()) == redrawn_as


def test_elements_that_belong_together_stay_so_and_none_is_lost() -> None:
    prepared = _prepared(f"[(begin := {_CODES}), begin + {_CODES}]")
    drawn, memory = prepared.input_set(3), HostMemory()
    which = redrawn_tensors(prepared, memory)
    assert which == ("int64", "int64")
    begin, end = with_call_values(drawn, which, CallValues(key=5, index=2), memory).inputs
    assert (end >= begin).all()
    for after, before in zip((begin, end), drawn.inputs, strict=True):
        assert not torch.equal(after, before)
        assert torch.equal(after.reshape(-1).sort().values, before.reshape(-1).sort().values)
