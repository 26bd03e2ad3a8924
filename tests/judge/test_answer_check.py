"""Trivial answers fail, or the tolerance is tightened, or admission refuses the task."""

import dataclasses

import pytest

from evaluator_svc.judge.admission.answer_check import (
    ADMISSION_SEEDS,
    AnswerCheck,
    check_answers,
    settle_exact,
)
from evaluator_svc.judge.admission.value_ranges import find_value_ranges
from evaluator_svc.judge.memory.judge_memory import open_memory
from kernel_foundry.domain.task import Size, Task, Tolerance, Workload
from tests.judge.judge_tasks import SOFTMAX, make_task, prepare

MEMORY = open_memory("null:0")


def checked(task: Task) -> AnswerCheck:
    """Return what admission makes of a task's answers on the host."""
    prepared = [prepare(task, w) for w in task.workloads]
    answers = check_answers(task, prepared, MEMORY)
    value_ranges = find_value_ranges(
        () if answers.refusals else prepared, answers.tolerance, ADMISSION_SEEDS[0]
    )
    smallest = next(iter(value_ranges), "")
    at = next((item for item in prepared if item.workload.name == smallest), None)
    settle_exact(answers, at, value_ranges.get(smallest, ()), MEMORY)
    for item in prepared:
        item.close()
    return answers


def test_the_derivation_says_where_a_tolerance_comes_from() -> None:
    answers = checked(make_task(SOFTMAX))

    derivation = answers.derivation
    assert (derivation.source, derivation.workload) == ("measured", "rows=33,cols=70")
    assert 0 < derivation.noise < 1e-6
    assert answers.tolerance.rtol == derivation.floor
    assert (derivation.tightened_by, answers.refusals, answers.warnings) == ("", [], [])


def test_a_tolerance_of_the_sidecar_is_taken_as_it_is() -> None:
    given = Tolerance(rtol=1e-3, atol=1e-5)
    answers = checked(make_task(SOFTMAX, tolerance=given))

    assert answers.tolerance == given
    assert answers.derivation.source == "sidecar"


@pytest.mark.parametrize(
    ("body", "answer"),
    [
        pytest.param("x + 1e-5 * torch.tanh(x)", "a copy of input 'x'", id="copy"),
        pytest.param("x.t() + 1e-5 * x.t().tanh()", "input 'x', transposed", id="transposed"),
        pytest.param("-x + 1e-5 * x.sin()", "input 'x', negated", id="negated"),
        pytest.param(
            "1 + 1e-5 * torch.sigmoid(x)", "the mean of another output everywhere", id="ones"
        ),
        pytest.param("3 + 1e-5 * x.tanh()", "the mean of another output everywhere", id="constant"),
        pytest.param(
            "1 + x[:, :1].abs() + 1e-5 * x.tanh()", "the mean of each row", id="the same in a row"
        ),
    ],
)
def test_a_tolerance_is_tightened_until_a_trivial_answer_fails(body: str, answer: str) -> None:
    answers = checked(make_task(f"def forward(self, x):\n    return {body}"))

    assert answers.refusals == []
    assert answers.derivation.tightened_by in (answer, "the mean of each column")
    assert (
        answers.derivation.safety * answers.derivation.noise <= 1.05 * answers.tolerance.rtol < 1e-5
    )
    loose = dataclasses.replace(answers.derivation, tightened_by="")
    assert answers.tolerance.rtol < loose.floor


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        pytest.param("x + 2e-7 * x", "a copy of input 'x' would pass", id="copy"),
        pytest.param("x.t() + 2e-7 * x.t()", "input 'x', transposed would", id="transposed"),
        pytest.param("x * 0 + 3", "the output is constant", id="constant"),
        pytest.param("x * 1", "a copy of input 'x' is right on what get_inputs", id="nothing"),
        pytest.param(
            "x[:, :1] + 1e-9 * x", "the mean of each row would pass", id="the same in a row"
        ),
    ],
)
def test_a_task_is_refused_where_noise_allows_no_tighter_tolerance(body: str, reason: str) -> None:
    answers = checked(make_task(f"def forward(self, x):\n    return {body}"))

    assert any(reason in refusal for refusal in answers.refusals), answers.refusals


@pytest.mark.parametrize(
    "body", ["x.t()", "-x", "x[0].expand(rows, cols)", "x.sum(-1, keepdim=True).expand(rows, cols)"]
)
def test_moving_data_is_a_task_like_any_other(body: str) -> None:
    """What gives the very same values is the operator itself and no shortcut."""
    answers = checked(make_task(f"def forward(self, x):\n    return {body}"))

    assert answers.refusals == []
    assert answers.derivation.tightened_by == ""


def test_inputs_that_hide_the_operator_are_told_and_other_signs_tell_it() -> None:
    task = make_task(
        "def forward(self, x):\n    return torch.relu(x)", inputs="[torch.rand(rows, cols)]"
    )
    answers = checked(task)

    assert answers.refusals == []
    assert any("a copy of input 'x' is right on what get_inputs" in w for w in answers.warnings)


def test_a_workload_that_answers_another_one_is_found() -> None:
    task = make_task("def forward(self, x):\n    return torch.arange(cols) + 0 * x.sum()")
    sizes = (Size(name="rows", value=5), Size(name="cols", value=20))
    small = Workload(name="small", sizes=sizes, held_out=True)
    answers = checked(dataclasses.replace(task, workloads=(*task.workloads, small)))

    assert any("constant" in refusal for refusal in answers.refusals)


def test_partial_passes_are_told_from_more_than_half() -> None:
    mostly_zero = checked(make_task("def forward(self, x):\n    return torch.relu(x - 1)"))
    half_zero = checked(make_task("def forward(self, x):\n    return torch.relu(x)"))

    assert half_zero.warnings == []
    assert len(mostly_zero.warnings) == 1
    assert "an output of zeros is right in 8" in mostly_zero.warnings[0]


def test_parts_of_inputs_that_nothing_reads_are_told() -> None:
    body = "def forward(self, x):\n    return torch.tanh(x[:, : cols // 2])"
    warnings = checked(make_task(body, cols=64)).warnings

    assert [w for w in warnings if "32:48 of axis 1 of input 'x'" in w]
    assert [w for w in warnings if "48:64 of axis 1 of input 'x'" in w]
    assert len(warnings) == 2


def test_idle_output_is_told() -> None:
    body = "def forward(self, x):\n    return nn.functional.pad(torch.tanh(x), (0, 10))"
    warnings = checked(make_task(body)).warnings

    assert [w for w in warnings if "the same at 10 of 80 places of axis 1 (the first at 70)" in w]


def test_masks_that_hide_a_place_by_chance_are_no_idle_output() -> None:
    task = make_task(
        "def forward(self, x, mask):\n    return torch.where(mask, x.tanh(), 0)",
        inputs="[torch.randn(rows, cols), torch.rand(rows, 1) < 0.5]",
        rows=12,
    )
    answers = checked(task)

    assert not [w for w in answers.warnings if "places of axis" in w or "hardly depends" in w]


def test_idle_weights_are_told() -> None:
    body = """
def __init__(self):
    super().__init__()
    self.unused = nn.Linear(4, 4)
    self.used = nn.Parameter(torch.ones(cols))

def forward(self, x):
    return torch.tanh(x) * self.used
"""
    warnings = checked(make_task(body)).warnings

    assert {w.split("'")[1] for w in warnings} == {"unused.weight", "unused.bias"}


BATCH_NORM = """
def __init__(self):
    super().__init__()
    self.norm = nn.BatchNorm1d(cols, eps=1e-6)

def forward(self, x):
    return nn.functional.dropout(self.norm(x), training=self.training)
"""


def test_a_normalisation_in_evaluation_mode_is_no_identity() -> None:
    """As the model starts, it multiplies by 1 and adds 0; drawn anew, a copy fails."""
    answers = checked(make_task(BATCH_NORM, training=False))

    assert answers.refusals == []
    assert answers.warnings == []
    starting = "def forward(self, x):\n    return (x - 0.0) / (1.0 + 1e-6) ** 0.5 * 1.0 + 0.0"
    identity = checked(make_task(starting))
    assert identity.derivation.tightened_by == "a copy of input 'x'" or identity.refusals
