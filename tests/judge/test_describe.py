"""Names of a task without a device: the same as those of its admission, and at no cost."""

from dataclasses import replace

import pytest

from evaluator_svc.judge import Judge
from kernel_foundry.domain.task import Task
from kernel_foundry.errors import BackendUnavailableError, TaskInvalidError
from tests.judge.judge_tasks import DEVICE, PEAKS, SCALED, SOFTMAX, TOLERANCE, make_task

FROM_NUMPY = "[torch.from_numpy(__import__('numpy').random.rand(rows, cols)).float()]"

BRANCHES = """
def forward(self, x):
    return torch.tanh(x) if x.sum() > 1e9 else torch.exp(x)
"""


@pytest.fixture
def absent() -> Judge:
    return Judge(replace(DEVICE, id="cuda:99"), threads=1)


@pytest.mark.parametrize("judge", ["host"], indirect=True)
@pytest.mark.parametrize(
    ("task", "operators"),
    [
        pytest.param(make_task(SCALED), 3, id="parameters"),
        pytest.param(make_task(SOFTMAX, inputs=FROM_NUMPY), 1, id="inputs from numpy"),
        pytest.param(make_task(BRANCHES), 0, id="real values decide"),
    ],
)
def test_names_are_those_of_a_draw(judge: Judge, task: Task, operators: int) -> None:
    message, _ = judge.draw(task, task.workloads[0].name, TOLERANCE, (1,))
    judge.release(message.draw)
    prepared = judge._prepared[task.digest, task.workloads[0].name]

    described = judge.describe(task)

    (names,) = described.workloads
    assert names.workload == task.workloads[0].name
    assert names.tensors == prepared.tensors
    assert names.scalars == prepared.scalars
    assert described.reference_op_count == operators


def test_no_device_is_needed_and_sizes_cost_nothing(absent: Judge) -> None:
    described = absent.describe(make_task(SOFTMAX, rows=1 << 20, cols=1 << 20))

    assert described.workloads[0].tensors[-1].shape == (1 << 20, 1 << 20)
    assert described.reference_op_count == 1
    with pytest.raises(TaskInvalidError, match=r"forward\(\) raises RuntimeError.*line 10"):
        absent.describe(make_task("def forward(self, x):\n    return x @ x"))


def test_values_that_decide_shapes_may_be_left_alone(absent: Judge) -> None:
    with pytest.raises(TaskInvalidError):
        absent.describe(make_task(BRANCHES), shapes_alone=True)
    assert absent.describe(make_task(SCALED), shapes_alone=True).reference_op_count == 3


def test_a_device_that_is_not_there_is_said_and_not_asked_for(absent: Judge) -> None:
    facts = {fact.name: fact.value for fact in absent.facts().facts}

    assert facts["device of the judge"]
    with pytest.raises(BackendUnavailableError):
        absent.admit(make_task(SOFTMAX), PEAKS)
