"""Work of a reference that its result does not need is found in its graph and told."""

import pytest

from evaluator_svc.judge.graph.graph import export_program
from evaluator_svc.judge.graph.redundancy import find_redundancies
from evaluator_svc.judge.inputs.prepared_workload import PreparedWorkload
from kernel_foundry.sdk.task_file import read_task
from tests.judge.judge_tasks import make_task, prepare
from tests.judge.test_admission import EXAMPLES

LAYERS = """
def __init__(self):
    super().__init__()
    self.linear = nn.Linear(70, 16)
    self.conv = nn.Conv2d(1, 8, 3)
    self.group_norm = nn.GroupNorm(4, 16)
    self.instance_norm = nn.InstanceNorm2d(8)
    self.dropout = nn.Dropout(0.5)

def forward(self, x):
"""


def found_in(prepared: PreparedWorkload) -> tuple[str, ...]:
    program = export_program(*prepared.input_set(1).callable_model())
    return find_redundancies(prepared, program, (1, 2))


def told(lines: str) -> tuple[str, ...]:
    body = LAYERS + "\n".join(f"    {line}" for line in lines.strip().splitlines())
    task = make_task(body, training=False)
    prepared = prepare(task)
    try:
        return found_in(prepared)
    finally:
        prepared.close()


@pytest.mark.parametrize(
    ("lines", "operator", "what"),
    [
        pytest.param(
            "unused = torch.exp(x) * 3\nreturn self.linear(x)", "mul", "is never used", id="unused"
        ),
        pytest.param(
            "return self.linear(x).tanh() + self.linear(x).sin()",
            "linear (node 'linear_1')",
            "computes what linear (node 'linear') has computed",
            id="twice",
        ),
        pytest.param(
            "return self.dropout(self.linear(x))", "dropout", "gives back 'linear'", id="dropout"
        ),
        pytest.param(
            "return torch.relu(torch.softmax(x, -1))", "relu", "gives back 'softmax'", id="relu"
        ),
        pytest.param("return x.tanh() * 1.0", "mul", "gives back 'tanh'", id="times one"),
        pytest.param(
            "return torch.log_softmax(torch.log_softmax(x, 1), 1)",
            "log_softmax (node 'log_softmax_1')",
            "gives back 'log_softmax'",
            id="log-softmax twice",
        ),
        # Of problems that are in use: a product that is added up,
        pytest.param(
            "return torch.sum(self.linear(x) / 2, dim=1, keepdim=True) * 1.5",
            "linear",
            "is only added up by sum",
            id="product, half, sum",
        ),
        # reductions over what the first of them has left of an axis,
        pytest.param(
            "y = torch.sum(self.linear(x), 1, keepdim=True)\n"
            "return torch.logsumexp(torch.max(y, 1, keepdim=True)[0], 1, keepdim=True)",
            "logsumexp",
            "works over axes of size one",
            id="log-sum-exp of one",
        ),
        # a row's maximum less its own mean, which is itself,
        pytest.param(
            "y = torch.max(self.linear(x), 1, keepdim=True).values\n"
            "return torch.nn.functional.gelu(y - y.mean(1, keepdim=True))",
            "sub",
            "gives the same whatever the inputs are",
            id="less its own mean",
        ),
        # and means of what was normalised.
        pytest.param(
            "return self.group_norm(self.linear(x)).mean(1)",
            "mean",
            "gives the same whatever the inputs are",
            id="group norm and mean",
        ),
        pytest.param(
            "return self.instance_norm(self.conv(x[None, None])).mean((2, 3))",
            "mean",
            "gives the same whatever the inputs are",
            id="instance norm and mean",
        ),
        pytest.param(
            "return torch.softmax(x.amax(1, keepdim=True), 1) + x",
            "softmax",
            "works over axes of size one",
            id="softmax of one",
        ),
    ],
)
def test_redundant_work_is_told(lines: str, operator: str, what: str) -> None:
    found = told(lines)

    assert any(operator in sentence and what in sentence for sentence in found), found


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param("return torch.softmax(self.linear(x), -1)", id="softmax"),
        pytest.param("return torch.relu_(self.linear(x))", id="in place"),
        pytest.param("return torch.sum(torch.relu(self.linear(x)), 1)", id="sum of a relu"),
        pytest.param("return torch.where(x > 0, x.tanh(), torch.zeros_like(x))", id="zeros"),
        pytest.param("return x.reshape(rows, 7, 10).transpose(1, 2).contiguous()", id="layout"),
        pytest.param("return self.group_norm(self.linear(x))", id="group norm"),
        # Guards change nothing on an ordinary draw, and decide about unusual ones.
        pytest.param(
            "return x / torch.sqrt(x.square().mean(-1, keepdim=True) + 1e-8)", id="eps of a norm"
        ),
        pytest.param("return x / x.norm(dim=1, keepdim=True).clamp(min=1e-12)", id="clamped norm"),
        pytest.param("return torch.log(x.abs().clamp(min=1e-20))", id="clamp before a log"),
        pytest.param("return torch.clamp(self.linear(x), -1e3, 1e3).tanh()", id="wide clamp"),
        pytest.param("return torch.nan_to_num(self.linear(x)).exp()", id="nan_to_num"),
        pytest.param(
            "return torch.softmax(torch.nn.functional.hardtanh(x, -50.0, 50.0), 1)", id="hardtanh"
        ),
    ],
)
def test_needed_work_is_not(lines: str) -> None:
    assert told(lines) == ()


@pytest.mark.parametrize("name", sorted(path.stem for path in EXAMPLES.glob("*.py")))
def test_the_examples_have_none(name: str) -> None:
    task = read_task(EXAMPLES / f"{name}.py")
    held_out = next(workload for workload in task.workloads if workload.held_out)
    prepared = prepare(task, held_out)
    assert found_in(prepared) == ()
    prepared.close()
