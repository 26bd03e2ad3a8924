"""A C++ library of a winner's kernels: built here, and run through a driver without a GPU."""

import asyncio
import base64
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import kernel_foundry_native as native
from kernel_foundry.domain.admission import (
    Admission,
    NamedScalar,
    NamedTensor,
    TensorRole,
    WorkloadAdmission,
)
from kernel_foundry.domain.attestation import Attestation
from kernel_foundry.domain.device import DeviceSpec
from kernel_foundry.domain.evaluation import ObjectCode
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.request import EvaluationRequest
from kernel_foundry.domain.task import Size, Task, Tolerance, Workload
from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.evidence.record import read_record, record_of
from kernel_foundry.plan.candidate_text import split
from kernel_foundry.sdk.export.cpp_folder import cpp_folder
from kernel_foundry.sdk.export.winner import Winner
from kernel_foundry.testing.evaluator import FakeEvaluator
from tests.domain_values import workload_admission

NAME = "fast_blend"
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
GPU = DeviceSpec(
    id="cuda:0",
    language=Language.CUDA,
    name="NVIDIA H100 80GB HBM3",
    vendor="NVIDIA",
    architecture="sm_90",
    driver_version="0",
    compute_units=132,
    sub_group_size=32,
    max_block=1024,
    shared_bytes=232448,
    memory_bytes=1 << 36,
    cache_bytes=50 << 20,
)
CALLS = """
import ctypes, sys, array
driver = ctypes.CDLL("libcuda.so.1")
library = ctypes.CDLL(sys.argv[1])
library.fast_blend_error.restype = ctypes.c_char_p
def call(name, *arguments):
    return library[f"fast_blend_{name}"](*arguments) and library.fast_blend_error().decode()
kernels, stream = ctypes.c_void_p(), ctypes.c_void_p()
assert not call("open", 0, ctypes.byref(kernels))
driver.cuStreamCreate(ctypes.byref(stream), 1)
def memory(values):
    space = (ctypes.c_float * (len(values) + 64))()
    address = -(-ctypes.addressof(space) // 256) * 256
    found = (ctypes.c_float * len(values)).from_address(address)
    found[:] = values
    return space, found, address
rows, cols = 5, 80
x, weight, bias, out = (memory([float(i) for i in range(n)]) for n in (400, 160, 2, 400))
slots = (ctypes.c_uint64 * 6)(x[2], weight[2], bias[2], out[2], rows, cols)
print(call("launch", kernels, slots, stream))
assert not call("prepare", kernels, slots, stream)
assert not call("launch", kernels, slots, stream)
driver.cuStreamSynchronize(stream)
print(list(out[1]) == [6.0 * i if i < cols else 0.25 * i for i in range(400)])
slots[4] = 9
print(call("launch", kernels, slots, stream))
slots[4], slots[0] = 5, x[2] + 4
print(call("launch", kernels, slots, stream))
library.fast_blend_close(kernels)
"""


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


def unjudged_winner(task: Task, candidate: str) -> Winner:
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


@pytest.fixture(scope="module")
def winner() -> Winner:
    return unjudged_winner(TASK, CANDIDATE)


def folder(winner: Winner) -> dict[str, str]:
    return cpp_folder("", [winner], module=NAME, problem="")


@pytest.mark.slow
def test_the_library_runs_through_the_driver(
    winner: Winner, fake_driver: Path, tmp_path: Path
) -> None:
    for path, text in folder(winner).items():
        Path(tmp_path, path).write_text(text, encoding="utf-8")
    flags = ["-std=c++17", "-O0", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    library = tmp_path / f"lib{NAME}.so"
    subprocess.run(
        ["c++", *flags, "-shared", "-fPIC", f"{NAME}.cpp", "-o", library, "-ldl"],
        cwd=tmp_path,
        check=True,
    )
    subprocess.run(
        ["c++", *flags, f"test_{NAME}.cpp", "-o", "program", library, "-ldl"],
        cwd=tmp_path,
        check=True,
    )
    Path(tmp_path, "libcuda.so.1").symlink_to(fake_driver)
    environment = os.environ | {"LD_LIBRARY_PATH": str(tmp_path)}

    def shown(*command: str) -> str:
        found = subprocess.run(
            command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert found.returncode == 0, found.stdout + found.stderr
        return found.stdout

    assert shown("./program").startswith("fast_blend runs:")
    said = shown(sys.executable, "-c", CALLS, str(library)).splitlines()
    assert said == [
        "the weights were not prepared for these sizes",
        "True",
        "rows = 9 was not judged, only 3 to 8",
        "x is null, or begins at no multiple of 256 bytes",
    ]


def test_sizes_that_vary_are_members_of_a_call(winner: Winner) -> None:
    header = folder(winner)[f"{NAME}.h"]
    members = [line.strip() for line in header.splitlines() if line.startswith("  ")]
    assert members[:6] == [
        "const float* x; /* input: float32 [rows][cols] */",
        "const float* linear_weight; /* parameter: float32 [2][cols] */",
        "const float* linear_bias; /* parameter: float32 [2] */",
        "float* out; /* output: float32 [rows][cols] */",
        "int64_t rows; /* 3 to 8 */",
        "int64_t cols; /* 64 to 96 */",
    ]


def test_the_evidence_is_beside_the_library(winner: Winner, tmp_path: Path) -> None:
    path = tmp_path / "evidence.json"
    path.write_text(folder(winner)["evidence.json"])
    assert json.loads(path.read_text())["task"]["name"] == "blend"
    assert read_record(path) == winner.record


def test_kernels_for_the_cpu_are_refused(winner: Winner) -> None:
    source = replace(winner.record.source, language=Language.SYCL)
    other = replace(winner, record=replace(winner.record, source=source))
    with pytest.raises(InvalidArgumentError, match="kernels are for the CPU"):
        folder(other)
