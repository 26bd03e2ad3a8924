"""A winner for a GPU that nobody has judged: to be written, and for a driver without a GPU."""

import asyncio
import base64
from dataclasses import replace

import kernel_foundry_native as native
from kernel_foundry.domain.admission import (
    Admission,
    NamedScalar,
    NamedTensor,
    TensorRole,
    WorkloadAdmission,
)
from kernel_foundry.domain.attestation import Attestation
from kernel_foundry.domain.evaluation import ObjectCode
from kernel_foundry.domain.request import EvaluationRequest
from kernel_foundry.domain.task import Size, Task, Tolerance, Workload
from kernel_foundry.evidence.record import record_of
from kernel_foundry.plan.candidate_text import split
from kernel_foundry.sdk.export.winner import Winner
from kernel_foundry.testing.evaluator import FakeEvaluator
from tests.domain_values import H200, workload_admission

TASK = Task(
    name="blend",
    reference="""\
import torch
from torch import nn

rows = 8
cols = 64


class Model(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.linear = nn.Linear(cols, 2)
        self.cols = cols
        self.steps = (2, cols)
        self.factor = 0.5

    def forward(self, x):
        return x * self.factor + self.linear.weight[0]


def get_inputs():
    return [torch.randn(rows, cols)]


def get_init_inputs():
    return [cols]
""",
    workloads=tuple(
        Workload(
            name=f"rows={rows},cols={cols}",
            sizes=(Size(name="rows", value=rows), Size(name="cols", value=cols)),
        )
        for rows, cols in ((8, 64), (3, 96))
    ),
)
CANDIDATE = """\
```cuda
extern "C" __global__ void scale(const float* in, float* out, float factor, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = in[i] * factor;
}
```
```python
TUNE = {"WG": [32, 64]}
CONST = {"EVEN": "cols % 2 == 0"}

def prepare(linear_weight):
    spare = zeros(linear_weight.shape, float32)
    twice = empty(linear_weight.shape, float32)
    count = linear_weight.numel()
    scale[cdiv(count, WG), WG](linear_weight, spare, 3.0, count)
    scale[cdiv(count, WG), WG](spare, twice, count=count, factor=2)

def launch(x, twice, cols, steps, factor, out):
    part = empty(x.shape, float32)
    scale[cdiv(x.numel(), WG), WG](x, part, factor, x.numel())
    scale[cdiv(x.numel(), WG), WG](part, out, factor, x.numel())
    scale[1, WG](twice, out, 1.0, min(cols, steps[1]))
```
"""
"""The driver of these tests has a kernel of this name."""
GPU = replace(H200, name="NVIDIA H100 80GB HBM3")


def admitted(workload: Workload) -> WorkloadAdmission:
    """What admission says of a workload of `TASK`."""
    sizes = {size.name: size.value for size in workload.sizes}
    rows, cols = sizes["rows"], sizes["cols"]
    tensors = (
        ("x", TensorRole.INPUT, (rows, cols), ""),
        ("linear_weight", TensorRole.PARAMETER, (2, cols), "linear.weight"),
        ("linear_bias", TensorRole.PARAMETER, (2,), "linear.bias"),
        ("out", TensorRole.OUTPUT, (rows, cols), ""),
    )
    scalars = {"cols": cols, "steps": (2, cols), "factor": 0.5}
    return workload_admission(
        workload=workload.name,
        tensors=tuple(
            NamedTensor(name=name, role=role, dtype="float32", shape=shape, path=path)
            for name, role, shape, path in tensors
        ),
        scalars=tuple(NamedScalar(name=n, literal=repr(value)) for n, value in scalars.items()),
    )


def unjudged_winner(task: Task = TASK, candidate: str = CANDIDATE) -> Winner:
    """A winner as if it had passed on an H100: nothing is run."""
    source = split(candidate)
    request = EvaluationRequest(task=task, device=GPU.id, source=source)
    evaluation = asyncio.run(FakeEvaluator(device=GPU).evaluate(request))
    signed = Attestation(
        seeds=(), seeds_given=False, signed_unix_s=0.0, digest="", public_key="", signature=""
    )
    compiler = native.device_kind("cuda").open_compiler(architecture=GPU.architecture)
    built = compiler.compile(source=source.device_code, options=[], kernels=("scale",))
    names = tuple(workload.name for workload in task.workloads)
    return Winner(
        record=record_of(task, source, replace(evaluation, attestation=signed)),
        admission=Admission(
            task=task.digest,
            device=GPU,
            workloads=tuple(map(admitted, task.workloads)),
            tolerance=Tolerance(rtol=1e-4, atol=1e-5),
        ),
        objects=(ObjectCode(workloads=names, code=base64.b64encode(built.code).decode()),),
    )
