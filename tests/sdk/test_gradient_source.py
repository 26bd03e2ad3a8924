"""A gradient's text: its module gives what autograd gives, for whatever forward takes."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator_svc.judge.reference.task_module import TaskModule
from kernel_foundry.domain.task import Task
from kernel_foundry.errors import TaskInvalidError
from kernel_foundry.sdk.gradient_source import with_gradient

HEAD = "import torch\nfrom torch import nn\n"


def module_of(text: str, *wanted: str) -> TaskModule:
    reference = with_gradient(HEAD + text, wanted, file_name="made.py")
    task = Task(name="made", reference=reference)
    return TaskModule(task, task.workloads[0], torch.device("cpu"))


def by_autograd(text: str, values: list[Any], state: dict[str, Any], count: int) -> list[Any]:
    """Gradients of the plain module by inputs of floats and by parameters."""
    task = Task(name="plain", reference=HEAD + text)
    plain = TaskModule(task, task.workloads[0], torch.device("cpu")).model
    plain.load_state_dict(state)
    inputs = [v.clone() if isinstance(v, torch.Tensor) else v for v in values[:-1]]
    by = [v.requires_grad_() for v in inputs if getattr(v, "is_floating_point", bool)()]
    by += [p.requires_grad_() for p in plain.parameters()]
    found = plain(*inputs)
    results = [found] if isinstance(found, torch.Tensor) else list(found)
    grads = values[-1] if isinstance(values[-1], list) else [values[-1]]
    made = torch.autograd.grad(results, by, grads)
    assert len(made) == count
    return list(made)


CASES = {
    "affine": (
        "class Model(nn.Module):\n"
        "    def __init__(self):\n"
        "        super(Model, self).__init__()\n"
        "        self.lin = nn.Linear(5, 3)\n"
        "    def forward(self, x):\n"
        "        return torch.tanh(self.lin(x))\n"
        "def get_inputs():\n    return [torch.randn(4, 5)]\n"
    ),
    "running statistics": (
        "class Model(nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.bn = nn.BatchNorm1d(5)\n"
        "    def forward(self, x):\n"
        "        return self.bn(x)\n"
        "def get_inputs():\n    return [torch.randn(4, 5)]\n"
    ),
    "labels and a number": (
        "class Model(nn.Module):\n"
        "    def forward(self, x, labels, scale, unused=None):\n"
        "        return nn.functional.cross_entropy(scale * x, labels)\n"
        "def get_inputs():\n    return [torch.randn(4, 5), torch.randint(0, 5, (4,)), 2.0]\n"
    ),
    "two results": (
        "class Model(nn.Module):\n"
        "    def forward(self, x, y):\n"
        "        return x @ y, (x * 3).sum(-1)\n"
        "def get_inputs():\n    return [torch.randn(4, 5), torch.randn(5, 2)]\n"
    ),
}


@pytest.mark.parametrize("text", CASES.values(), ids=list(CASES))
def test_it_gives_what_autograd_gives(text: str) -> None:
    module = module_of(text)
    values = module.input_values(seed=3)
    state = {name: value.clone() for name, value in module.model.state_dict().items()}
    with torch.no_grad():
        found = module.model(*values)
    torch.testing.assert_close(list(found), by_autograd(text, values, state, len(found)))
    for name, value in module.model.state_dict().items():
        assert torch.equal(value, state[name])


@settings(max_examples=25, deadline=None)
@given(
    rows=st.integers(1, 6),
    cols=st.integers(1, 6),
    operators=st.lists(
        st.sampled_from(["torch.sin(h)", "h * w", "h + x", "torch.softmax(h, -1)", "h.cumsum(0)"]),
        min_size=1,
        max_size=4,
    ),
    seed=st.integers(0, 2**31),
)
def test_chains_of_operators_too(rows: int, cols: int, operators: list[str], seed: int) -> None:
    lines = "".join(f"        h = {operator}\n" for operator in operators)
    text = (
        "class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        f"        self.w = nn.Parameter(torch.ones({cols}))\n"
        "    def forward(self, x):\n        w = self.w\n        h = x * w\n"
        f"{lines}        return h\n"
        f"def get_inputs():\n    return [torch.randn({rows}, {cols})]\n"
    )
    module = module_of(text)
    values = module.input_values(seed)
    found = module.model(*values)
    wanted = by_autograd(text, values, module.model.state_dict(), 2)
    torch.testing.assert_close(list(found), wanted)


def test_what_is_wanted_can_be_named() -> None:
    found = module_of(CASES["affine"], "lin.bias").model(torch.zeros(4, 5), torch.ones(4, 3))
    assert [tensor.shape for tensor in found] == [(3,)]
    named = module_of(CASES["affine"], "lin.scale")
    with pytest.raises(ValueError, match=r"no input and no trained parameter lin\.scale"):
        named.model(torch.zeros(4, 5), torch.ones(4, 3))


def test_words_of_the_file_stay_its_own() -> None:
    text = CASES["affine"] + "gradient = results_of_forward = float_tensors = None\n"
    module = module_of(text)
    assert len(module.model(*module.input_values(seed=1))) == 3


@pytest.mark.parametrize(
    "forward", ["def forward(self, *x)", "def forward(self, *, x)", "def call(self, x)"]
)
def test_a_forward_without_plain_arguments_is_refused(forward: str) -> None:
    text = f"class Model:\n    {forward}:\n        return x\ndef get_inputs():\n    return [1]\n"
    with pytest.raises(TaskInvalidError, match="backward needs a forward"):
        with_gradient(text, file_name="made.py")


def test_a_gradient_whose_shape_lies_is_the_references_failure() -> None:
    """Autograd itself refuses what a function of the file's own gives back."""
    text = (
        "class Lie(torch.autograd.Function):\n"
        "    @staticmethod\n    def forward(x):\n        return x.clone()\n"
        "    @staticmethod\n    def setup_context(ctx, inputs, output):\n        pass\n"
        "    @staticmethod\n    def backward(ctx, grad):\n        return grad.new_ones(7, 9)\n"
        "class Model(nn.Module):\n    def forward(self, x):\n        return Lie.apply(x)\n"
        "def get_inputs():\n    return [torch.randn(4, 5)]\n"
    )
    module = module_of(text)
    values = module.input_values(seed=1)
    with pytest.raises(TaskInvalidError, match="invalid gradient"), module.user_code("forward()"):
        module.model(*values)
