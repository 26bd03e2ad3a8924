"""The CUDA candidates among the examples fit their tasks, compile, and compute what is asked."""

from __future__ import annotations

import pathlib
import random
from dataclasses import dataclass

import pytest
import torch

import kernel_foundry_native
from evaluator_svc.judge.describe import describe_task
from evaluator_svc.judge.inputs.input_set import flatten_outputs
from evaluator_svc.judge.inputs.parameters import new_parameters, parameter_rules
from evaluator_svc.judge.reference.arguments import read_arguments
from evaluator_svc.judge.reference.task_module import TaskModule
from kernel_foundry.domain.task import Task
from kernel_foundry.plan import (
    NameTable,
    configurations,
    parse,
    split,
)
from kernel_foundry.plan.from_admission import device_limits, name_table
from kernel_foundry.plan.tree import Plan
from kernel_foundry.sdk.task_file import read_task
from tests.cuda_on_host.host_run import COMPILER, BoundCandidate, bind, run_on_host
from tests.domain_values import H200

FOLDER = pathlib.Path(__file__).parents[2] / "examples"
NAMES = sorted(path.name.removesuffix(".cuda.md") for path in FOLDER.glob("*.cuda.md"))
LIMITS = device_limits(H200)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Example:
    task: Task
    code: str
    plan: Plan
    tables: tuple[NameTable, ...]
    """One for each workload of the task."""

    def bound(self, table: NameTable, configuration, tensors=None) -> BoundCandidate:
        """Return the candidate for the workload of `table`."""
        return bind(
            self.code,
            self.plan,
            names=table,
            configuration=configuration,
            device=LIMITS,
            library_ops=self.task.library_ops,
            tensors=tensors,
        )


@pytest.fixture(scope="module", params=NAMES)
def example(request) -> _Example:
    """Every example with a CUDA candidate."""
    task = read_task(FOLDER / f"{request.param}.py")
    found = split((FOLDER / f"{request.param}.cuda.md").read_text("utf-8"))
    assert found.language == "cuda"
    return _Example(
        task=task,
        code=found.device_code,
        plan=parse(found.plan),
        tables=tuple(name_table(w.tensors, w.scalars) for w in describe_task(task).workloads),
    )


def test_examples_are_there() -> None:
    """The four tasks of the SYCL examples and those that need more than one language feature."""
    assert {path.name.removesuffix(".sycl.md") for path in FOLDER.glob("*.sycl.md")} <= set(NAMES)
    assert {"residual_block", "causal_attention", "gru", "conv_relu_pool"} <= set(NAMES)


def test_candidate_compiles_for_hopper(example, hopper_compiler) -> None:
    """The default and one other configuration, on every workload, without spills by default."""
    prelude = kernel_foundry_native.prelude("cuda")
    options = [f"-I{path}" for path in kernel_foundry_native.cuda_include_paths()]
    for table in example.tables:
        default, *others = configurations(example.plan, table, LIMITS)
        for configuration in (default, *random.Random(3).sample(others, min(1, len(others)))):
            candidate = example.bound(table, configuration)
            found = hopper_compiler.compile(
                source=candidate.unit(prelude),
                options=options,
                kernels=list(candidate.sequence.kernels),
            )
            assert found.code


@pytest.mark.skipif(COMPILER is None, reason="no g++ to run device code on the host")
def test_candidate_computes_the_reference(example, tmp_path) -> None:
    """On the held-out workload, with weights drawn anew; kernels run on the host."""
    (at,) = (i for i, workload in enumerate(example.task.workloads) if workload.held_out)
    table = example.tables[at]
    module = TaskModule(example.task, example.task.workloads[at], torch.device("cpu"))
    model = module.model
    state = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    for path, value in new_parameters(parameter_rules(model), 5).items():
        state[path].copy_(value)
    arguments = read_arguments(model, module.input_values(6))
    tensors = dict(zip(arguments.names, (t.clone() for t in arguments.tensors), strict=True))
    for name in table.tensors:
        if name.role in ("parameter", "buffer"):
            tensors[name.name] = state[name.path].clone()
    configuration = next(iter(configurations(example.plan, table, LIMITS)))
    found = run_on_host(example.bound(table, configuration, tensors), tmp_path)

    with torch.no_grad():
        expected = list(flatten_outputs(model.double()(*arguments.values(
            [t.double() if t.is_floating_point() else t for t in arguments.tensors]
        ))))  # fmt: skip
    for output, wanted in zip(table.outputs, expected, strict=True):
        actual = found[output.name].double()
        torch.testing.assert_close(actual, wanted, rtol=2e-5, atol=2e-5)
    module.close()
