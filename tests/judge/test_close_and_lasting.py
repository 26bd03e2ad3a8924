"""Draws in which differences are small, squares are no numbers, and states do not fade."""

from functools import partial

import pytest
import torch

from evaluator_svc.judge.comparison.needed_factor import NeededFactor, needed_factor
from evaluator_svc.judge.inputs.input_set import InputSet
from evaluator_svc.judge.unusual_values.distributions import with_distribution
from kernel_foundry.domain.admission import Distribution
from kernel_foundry.domain.task import Task
from tests.judge.judge_tasks import TOLERANCE, make_task, prepare, task_of

ROWS = "torch.randn(rows, cols)"
PAIRS = "(x0[:, None] - {}[None]).square().sum(-1)"


_task = partial(task_of, rows=17, cols=24)


def _drawn(task: Task, distribution: Distribution) -> tuple[InputSet, NeededFactor | None]:
    """Return a draw, and what the reference can be held to there; None: to nothing."""
    prepared = prepare(task)
    ordinary = prepared.input_set(5)
    changed = with_distribution(prepared, ordinary, distribution)
    is_same = changed is ordinary
    return changed, None if is_same else needed_factor(changed, distribution, TOLERANCE)


def _by_products(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x.square().sum(-1)[:, None] + y.square().sum(-1)[None] - 2 * x @ y.T


@pytest.mark.parametrize("other", ["x1", "x0"])
def test_distances_from_products_are_far_off_where_rows_are_close(other: str) -> None:
    inputs = (ROWS, ROWS) if other == "x1" else (ROWS,)
    changed, needed = _drawn(_task(PAIRS.format(other), *inputs), Distribution.CLOSE)
    assert needed is not None
    (expected,), x, y = changed.expected(), changed.inputs[0], changed.inputs[-1]
    allowed = TOLERANCE.rtol * needed.factor * (expected + expected.square().mean().sqrt())
    is_wrong = (_by_products(x, y) - expected).abs() > allowed
    assert float(is_wrong.float().mean()) > 0.5
    assert not bool(((x[:, None] - y[None]).square().sum(-1) - expected).abs().gt(allowed).any())


def test_a_row_is_an_ordinary_one_where_rows_are_close() -> None:
    """The variance of each row as mean of squares less square of mean is as good as ever."""
    changed, needed = _drawn(_task("(x0 - x1).var(-1)", ROWS, ROWS), Distribution.CLOSE)
    assert needed is not None
    for rows in changed.inputs:
        assert float((rows.var(-1) / rows.mean(-1).square()).min()) > 0.5


@pytest.mark.parametrize(
    "task",
    [
        _task("x0.square().sum(-1)", ROWS),  # nothing is subtracted
        _task("(x0 - x0.mean(0)).square().sum(0)", ROWS),  # the mean is rounded
        _task("torch.cdist(x0, x1, compute_mode='use_mm_for_euclid_dist')", ROWS, ROWS),
    ],
    ids=["squares", "variance", "by_products_itself"],
)
def test_close_rows_bind_nobody_where_the_reference_loses_as_much(task: Task) -> None:
    assert _drawn(task, Distribution.CLOSE)[1] is None


@pytest.mark.parametrize(
    ("result", "is_free"),
    [
        ("torch.hypot(x0, x1)", True),
        ("x0 / torch.hypot(x0, x1)", True),
        ("2 * x0 + x1", True),
        ("x0 * x1", False),
        ("(x0.square() + x1.square()).sqrt()", False),
        ("torch.tanh(x0) + x1", False),
        ("(x0 + x1).std(-1)", False),  # accumulates in float64 on a CPU
    ],
)
def test_sizes_are_far_where_the_reference_has_none_of_its_own(result: str, is_free: bool) -> None:
    for distribution in (Distribution.HUGE, Distribution.TINY):
        assert (_drawn(_task(result, ROWS, ROWS), distribution)[1] is not None) is is_free


def test_products_of_a_row_meet_no_mixed_magnitudes() -> None:
    """Sixteen large ones together overflow, and are nothing after what vanished."""
    task = _task("torch.cumprod(x0, -1)", "torch.rand(rows, cols)")
    assert _drawn(task, Distribution.MAGNITUDES)[1] is None
    assert _drawn(task, Distribution.NEAR_ONE)[1] is not None


RECURRENCE = """
def __init__(self):
    super().__init__()
    self.layer = nn.{}

def forward(self, x):
    return self.layer(x){}
"""
OWN = """
def __init__(self):
    super().__init__()
    self.rate = nn.Parameter(torch.randn(cols))

def forward(self, x):
    state, states = torch.zeros_like(x[:, 0]), []
    for step in range(x.shape[1]):
        state = torch.sigmoid(self.rate) * state + x[:, step]
        states.append(state)
    return torch.stack(states, 1)
"""


@pytest.mark.parametrize(
    "body",
    [
        RECURRENCE.format("GRU(cols, 8, batch_first=True, bias=False)", "[0]"),
        RECURRENCE.format("GRU(cols, 8, batch_first=True)", "[1]"),
        RECURRENCE.format("LSTM(cols, 8, batch_first=True)", "[0]"),
        RECURRENCE.format("RNN(cols, 8, batch_first=True)", "[0]"),
        OWN,
    ],
    ids=["gru", "last_state", "lstm", "rnn", "own"],
)
def test_what_came_in_early_shows_late(body: str) -> None:
    task = make_task(body, rows=64, cols=6, inputs="[torch.randn(2, rows, cols)]")
    changed, needed = _drawn(task, Distribution.LASTING_WEIGHTS)
    assert needed is not None
    (x,), (whole,) = changed.inputs, changed.run()
    (late,) = changed.run(inputs=[torch.cat((torch.zeros_like(x[:, :40]), x[:, 40:]), 1)])
    end = slice(-8, None) if whole.shape[1] == 64 else slice(None)
    assert float((whole - late)[:, end].abs().max()) > 0.1


@pytest.mark.parametrize(
    "layers",
    ["Conv1d(6, 6, 3), nn.Conv1d(6, 6, 3)", "Linear(96, 96), nn.Linear(96, 96)"],
    ids=["windows", "batch"],
)
def test_where_nothing_is_handed_on_no_weights_are_looked_for(layers: str) -> None:
    body = RECURRENCE.format(f"Sequential(nn.{layers})", "")
    task = make_task(body, rows=96, cols=6, inputs="[torch.randn(6, rows)]")
    assert _drawn(task, Distribution.LASTING_WEIGHTS)[1] is None
