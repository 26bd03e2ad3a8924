"""Admission: real references are admitted with their facts, hopeless ones refused with a reason."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from evaluator_svc.judge import Judge
from kernel_foundry.domain.admission import Admission, TensorRole
from kernel_foundry.domain.task import Precision, Size, Task, Tolerance, Workload
from kernel_foundry.errors import TaskInvalidError
from kernel_foundry.sdk.task_file import read_task
from tests.judge.judge_tasks import DEVICE, PEAKS, SCALED, SOFTMAX, make_task

EXAMPLES = Path(__file__).parents[2] / "examples"


def admit(judge: Judge, task: Task) -> Admission:
    return judge.admit(task, PEAKS)


def small_example(name: str) -> Task:
    task = read_task(EXAMPLES / f"{name}.py")
    timed, *held_out = task.workloads
    sizes = tuple(Size(name=s.name, value=min(s.value, 128)) for s in timed.sizes)
    return replace(task, workloads=(replace(timed, sizes=sizes), *held_out))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "names", "operator"),
    [
        ("bias_gelu_layernorm", {"x", "bias", "ln_weight", "ln_bias", "out"}, "layer_norm.default"),
        ("softmax", {"x", "out"}, "softmax.int"),
        ("residual_rmsnorm", {"x", "residual", "weight", "out"}, "rsqrt.default"),
        ("matmul_bias_relu", {"x", "linear_weight", "linear_bias", "out"}, "linear.default"),
    ],
)
def test_an_example_is_admitted_with_names_graph_and_baselines(
    judge: Judge, name: str, names: set[str], operator: str
) -> None:
    admission = admit(judge, small_example(name))

    assert admission.refusals == ()
    (left_out,) = admission.warnings
    assert left_out.startswith("torch.compile is not timed")
    assert 1e-6 < admission.tolerance.rtol < 1e-3
    timed, held_out = admission.workloads
    assert {tensor.name for tensor in timed.tensors} == names
    assert f"aten.{operator}" in [node.op for node in timed.graph]
    placeholders = {node.name for node in timed.graph if node.op == "placeholder"}
    assert placeholders == names - {"out"}
    assert [b.name for b in timed.baselines] == ["eager", *_graphs(admission)]
    assert all(baseline.timing.median_ns > 0 for baseline in timed.baselines)
    assert held_out.baselines == ()


def _graphs(admission: Admission) -> list[str]:
    return ["cuda_graph"] if admission.device.id.startswith("cuda") else []


@pytest.mark.slow
def test_torch_compile_is_a_baseline_and_what_it_took_is_told(compiling_judge: Judge) -> None:
    config = pytest.importorskip("torch._inductor.config")
    with config.patch({"cpp.simdlen": 1}):  # or compilers try which vectors the processor has
        admission = admit(compiling_judge, small_example("bias_gelu_layernorm"))

    assert (admission.refusals, admission.warnings) == ((), ())
    timed, held_out = admission.workloads
    assert [b.name for b in timed.baselines] == ["eager", "torch.compile", *_graphs(admission)]
    assert all(baseline.timing.median_ns > 0 for baseline in timed.baselines)
    assert held_out.baselines == ()
    assert any(fact.value.endswith("s to compile") for fact in compiling_judge.facts().facts)


@pytest.mark.slow
def test_max_autotune_is_a_baseline_where_it_is_asked_for() -> None:
    config = pytest.importorskip("torch._inductor.config")
    task = make_task("def forward(self, x):\n    return torch.tanh(x) * 0.123")
    asked = Judge(
        DEVICE, threads=1, baselines=("torch.compile_max_autotune",), baseline_seconds=0.02
    )
    with config.patch({"cpp.simdlen": 1}):  # or compilers try which vectors the processor has
        admission = admit(asked, task)

    (warning,) = admission.warnings
    assert warning.startswith("torch.compile is not timed")
    names = [baseline.name for baseline in admission.workloads[0].baselines]
    assert names == ["eager", "torch.compile_max_autotune"]
    assert any(f.name.startswith("torch.compile_max_autotune of") for f in asked.facts().facts)


def test_cost_of_a_matrix_product(judge: Judge) -> None:
    task = make_task(
        "def forward(self, a, b):\n    return torch.relu(a @ b)",
        inputs="[torch.randn(rows, cols), torch.randn(cols, rows)]",
    )
    workload = admit(judge, task).workloads[0]

    assert workload.flops == 2 * 33 * 70 * 33 + 33 * 33
    assert workload.minimal_bytes == 4 * (2 * 33 * 70 + 33 * 33)
    staying = 4 * 33 * 33  # the output may stay in the cache
    read = workload.minimal_bytes - staying
    assert workload.traffic_bound_ns == pytest.approx(read / 1e10 * 1e9)
    assert workload.arithmetic_estimate_ns == pytest.approx(workload.flops / 1e11 * 1e9)
    assert workload.arithmetic_unit == "FMA"


CONVOLUTION = """
def __init__(self):
    super().__init__()
    self.conv1 = nn.Conv2d(3, 8, 3, stride=2)
    self.layers = nn.Sequential(nn.BatchNorm2d(8))
    self.table = torch.arange(4.0)
    self.name = "net"
    self._hidden = 3

def forward(self, image, scale):
    return self.layers(self.conv1(image)) * scale + self.table[1]
"""


def test_names_of_parameters_buffers_and_scalars(judge: Judge) -> None:
    task = make_task(CONVOLUTION, inputs="[torch.randn(2, 3, 17, 17), 2.5]")
    message, descriptors = judge.draw(task, task.workloads[0].name, Tolerance(rtol=1, atol=1), (1,))
    judge.release(message.draw)
    prepared = judge._prepared[task.digest, task.workloads[0].name]

    assert len(descriptors) + len(message.handles) == 1
    assert [(t.name, t.role.value, t.path) for t in prepared.tensors] == [
        ("image", "input", ""),
        ("conv1_weight", "parameter", "conv1.weight"),
        ("conv1_bias", "parameter", "conv1.bias"),
        ("layers_0_weight", "parameter", "layers.0.weight"),
        ("layers_0_bias", "parameter", "layers.0.bias"),
        ("table", "buffer", "table"),
        ("layers_0_running_mean", "buffer", "layers.0.running_mean"),
        ("layers_0_running_var", "buffer", "layers.0.running_var"),
        ("layers_0_num_batches_tracked", "buffer", "layers.0.num_batches_tracked"),
        ("out", "output", ""),
    ]
    scalars = {scalar.name: scalar.literal for scalar in prepared.scalars}
    assert scalars["scale"] == "2.5"
    assert scalars["conv1_stride"] == "(2, 2)"
    assert scalars["layers_0_eps"] == "1e-05"
    assert scalars["name"] == "'net'"
    assert "training" not in scalars
    assert "_hidden" not in scalars
    variance = prepared.input_set(3).state["layers.0.running_var"]
    assert bool((variance > 0).all())
    assert bool((variance != 1).any())


def test_a_name_that_is_taken_gets_a_suffix(judge: Judge) -> None:
    body = SCALED.replace("def forward(self, x)", "def forward(self, weight)").replace(
        "tanh(x)", "tanh(weight)"
    )
    task = make_task(body)
    message, _ = judge.draw(task, task.workloads[0].name, Tolerance(rtol=1, atol=1), (1,))
    judge.release(message.draw)

    assert [s.name for s in message.slots] == ["weight", "weight_2", "bias", "out"]
    assert [s.role for s in message.slots] == [
        TensorRole.INPUT,
        TensorRole.PARAMETER,
        TensorRole.PARAMETER,
        TensorRole.OUTPUT,
    ]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        pytest.param(
            "def forward(self, x):\n    return x * 0 + 3",
            "the output is constant",
            id="constant",
        ),
        pytest.param(
            "def forward(self, x):\n    return nn.functional.dropout(x, training=self.training)",
            "the reference is random",
            id="dropout",
        ),
        pytest.param(
            "def forward(self, x):\n    return torch.softmax(x.amax(-1, keepdim=True), -1)",
            "the output is constant",
            id="softmax of one",
        ),
        pytest.param(
            "def forward(self, x):\n    return x + 1e-7",
            "a copy of input 'x' would pass",
            id="copy",
        ),
        pytest.param(
            "def forward(self, x):\n    return x[x > 0]",
            "the outputs' shapes depend on the inputs' values",
            id="shape from values",
        ),
        pytest.param(
            "def forward(self, x):\n    return torch.log(x)",
            "NaN or infinite",
            id="nan",
        ),
    ],
)
def test_a_task_that_says_nothing_is_refused(judge: Judge, body: str, reason: str) -> None:
    admission = admit(judge, make_task(body))

    assert not admission.admitted
    assert any(reason in refusal for refusal in admission.refusals)
    assert all(workload.baselines == () for workload in admission.workloads)


def test_a_degenerate_task_is_admitted_where_that_is_asked_for(judge: Judge) -> None:
    task = make_task("def forward(self, x):\n    return x * 0 + 3")
    refused = admit(judge, task)
    admission = admit(judge, replace(task, admit_degenerate=True))

    assert admission.admitted
    assert admission.degeneracies == refused.refusals
    assert refused.degeneracies == ()
    assert any("constant" in reason for reason in admission.degeneracies)
    assert admission.workloads[0].baselines


def test_a_random_task_is_refused_even_where_degenerate_ones_are_admitted(judge: Judge) -> None:
    task = make_task("def forward(self, x):\n    return nn.functional.dropout(x)")
    admission = admit(judge, replace(task, admit_degenerate=True))

    assert not admission.admitted
    assert admission.degeneracies == ()


def test_a_refused_task_is_not_taken_apart_and_no_setting_is_proposed_that_it_has(
    judge: Judge,
) -> None:
    task = make_task(
        "def forward(self, x):\n    unused = x * 2\n    return nn.functional.dropout(x)"
    )
    in_training, at_rest = (admit(judge, replace(task, training=on)) for on in (True, False))

    assert in_training.redundancies == at_rest.redundancies == ()
    assert "`training: false`" in in_training.refusals[0]
    assert at_rest.refusals[0].startswith("the reference is random")
    assert "training" not in at_rest.refusals[0]


def test_a_tolerance_above_the_output_is_refused(judge: Judge) -> None:
    task = make_task(
        "def forward(self, x):\n    return torch.softmax(x, -1) * 1e-3",
        tolerance=Tolerance(rtol=1e-3, atol=1e-2),
    )
    admission = admit(judge, task)

    assert any("zeros would pass" in r or "constant" in r for r in admission.refusals)


def test_a_task_that_does_not_fit_the_memory_is_refused_without_allocating(
    judge: Judge,
) -> None:
    admission = admit(judge, make_task(SOFTMAX, rows=1 << 20, cols=1 << 20))

    assert len(admission.refusals) == 1
    assert "does not fit the memory" in admission.refusals[0]
    assert admission.device.memory_bytes == DEVICE.memory_bytes


@pytest.mark.slow
def test_idle_inputs_and_weights_are_warned_of(judge: Judge) -> None:
    body = """
def __init__(self):
    super().__init__()
    self.unused = nn.Linear(4, 4)

def forward(self, x, y):
    return torch.tanh(x) + 1e-12 * y
"""
    task = make_task(body, inputs="[torch.randn(rows, cols), torch.randn(rows, cols)]")
    warnings = admit(judge, task).warnings

    assert any("hardly depends on input 'y'" in warning for warning in warnings)
    assert any("hardly depends on the weights" in warning for warning in warnings)


@pytest.mark.parametrize(
    ("body", "inputs", "message"),
    [
        pytest.param(
            "def forward(self, x):\n    return x @ x",
            "[torch.randn(rows, cols)]",
            r"forward\(\) raises RuntimeError.*line 10: return x @ x",
            id="raises",
        ),
        pytest.param(
            "def forward(self, x):\n    return x.add_(1)",
            "[torch.randn(rows, cols)]",
            "changes its input 'x' in place",
            id="in place",
        ),
        pytest.param(
            "def forward(self, x):\n    return {'a': x}",
            "[torch.randn(rows, cols)]",
            "gives a dict",
            id="dict",
        ),
        pytest.param(
            "def forward(self, x):\n    return x",
            "[torch.randn(rows, cols), 1]",
            "gives 2 values, but forward takes 1",
            id="too many inputs",
        ),
        pytest.param(
            "def forward(self, x):\n    return x",
            "exit()",
            r"get_inputs\(\) raises SystemExit",
            id="exits",
        ),
    ],
)
def test_a_broken_reference_is_invalid_with_its_line(
    judge: Judge, body: str, inputs: str, message: str
) -> None:
    with pytest.raises(TaskInvalidError, match=message):
        admit(judge, make_task(body, inputs=inputs))


def test_a_reference_without_model_is_invalid(judge: Judge) -> None:
    task = Task(name="t", reference="x = 1\n", workloads=(Workload(name="default"),))

    with pytest.raises(TaskInvalidError, match="no Model and no get_inputs"):
        admit(judge, task)
    for reference in ("x = 1\n", "x = (\n"):  # a task that comes by gRPC may have no name
        with pytest.raises(TaskInvalidError, match=r"^task\.reference[:,] "):
            admit(judge, replace(task, name="", reference=reference))


def test_a_bfloat16_task_is_compared_with_float32_mathematics(judge: Judge) -> None:
    task = replace(make_task(SOFTMAX), precision=Precision.BF16)
    message, _ = judge.draw(task, task.workloads[0].name, Tolerance(rtol=0.03, atol=0.03), (4,))
    judge.release(message.draw)
    prepared = judge._prepared[task.digest, task.workloads[0].name]
    drawn = prepared.input_set(4)

    assert [s.dtype for s in message.slots] == ["bfloat16", "bfloat16"]
    exact = torch.softmax(drawn.inputs[0].float(), -1).bfloat16()
    assert torch.equal(drawn.expected()[0], exact)


@pytest.fixture
def broken_compiler() -> Iterator[None]:
    config = pytest.importorskip("torch._inductor.config")
    torch._dynamo.reset()
    with config.patch({"cpp.cxx": ("/nowhere/g++",), "fx_graph_cache": False}):
        yield
    torch._dynamo.reset()


@pytest.mark.slow
@pytest.mark.parametrize("compiling_judge", ["host"], indirect=True)
@pytest.mark.usefixtures("broken_compiler")
def test_a_torch_compile_that_fails_is_a_warning(compiling_judge: Judge) -> None:
    task = make_task("def forward(self, x):\n    return torch.tanh(x) * 0.123 + x.cos()")
    admission = compiling_judge.admit(task, PEAKS)

    assert admission.admitted
    assert any(warning.startswith("torch.compile: ") for warning in admission.warnings)
    assert [b.name for b in admission.workloads[0].baselines] == ["eager"]


def test_an_input_of_one_number_is_admitted(judge: Judge) -> None:
    """It has no axis whose parts could be left out."""
    task = make_task(
        "def forward(self, x, scale):\n    return x * scale",
        inputs="[torch.randn(rows, cols), torch.rand(()) + 1]",
    )
    admission = judge.admit(task, PEAKS)
    assert admission.refusals == ()
    assert [t.shape for t in admission.workloads[0].tensors if t.name == "scale"] == [()]
