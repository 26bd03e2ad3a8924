"""Tasks made for the judge's tests, and the runner's side of a draw."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from evaluator_svc.judge import Judge
from evaluator_svc.judge.inputs.prepared_workload import PreparedWorkload
from evaluator_svc.messages.draw import Draw
from kernel_foundry.domain.device import Peaks
from kernel_foundry.domain.task import Size, Task, Tolerance, Workload
from kernel_foundry_native import _core as native
from tests.domain_values import CPU

DEVICE = replace(CPU, id="null:0", cache_bytes=1 << 20)
"""A smaller cache: what is flushed before each timed call takes less time."""

PEAKS = Peaks(
    bandwidth_bytes_per_second=1e10,
    cache_bandwidth_bytes_per_second=5e10,
    flops_per_second=1e11,
    launch_ns=1e4,
    read_bandwidth_bytes_per_second=1e10,
)

EACH_MEMORY = ("host", pytest.param("cuda", marks=pytest.mark.gpu))
"""Kinds of judges, see the fixture `judge`."""

EACH_MEMORY_AND_SIZE = (
    *EACH_MEMORY,
    "host large",
    pytest.param("cuda large", marks=pytest.mark.gpu),
)

TOLERANCE = Tolerance(rtol=5e-5, atol=5e-5)


class RunnerSide:
    """A draw as its runner sees it: shared bytes and offsets, nothing else.

    CUDA opens a handle in another process only, so there the judge's own buffers are looked at.
    """

    def __init__(self, judge: Judge, draw: Draw, descriptors: tuple[int, ...]) -> None:
        self.draw = draw
        if draw.handles:
            buffers = judge._draws[draw.draw].buffers
            self.whole = [judge._memory.bytes_of(r, 0, draw.size_bytes) for r in buffers]
        else:
            buffers = [native.SharedBuffer.open(fd, draw.size_bytes) for fd in descriptors]
            self.whole = [torch.frombuffer(buffer, dtype=torch.uint8) for buffer in buffers]

    def tensor(self, name: str, *, seed: int, slot: int = 0) -> torch.Tensor:
        place = next(s for s in self.draw.slots if s.name == name)
        start = place.offsets[slot]
        part = self.whole[seed][start : start + place.size_bytes]
        return part.view(getattr(torch, place.dtype)).view(place.shape)

    def run(self, kernel: Callable[..., torch.Tensor], *inputs: str, output: str = "out") -> None:
        """Write `kernel(*inputs)` into every slot of every seed."""
        for seed in range(self.draw.seed_count):
            values = [self.tensor(name, seed=seed) for name in inputs]
            slots = next(s for s in self.draw.slots if s.name == output).offsets
            for slot in range(len(slots)):
                self.tensor(output, seed=seed, slot=slot).copy_(kernel(*values))


def task_of(result: str, *inputs: str, rows: int = 64, cols: int = 48) -> Task:
    """Return a task with one expression of `x0`, `x1` and so on; `inputs` are theirs."""
    names = ", ".join(f"x{i}" for i in range(len(inputs)))
    forward = f"\ndef forward(self, {names}):\n    return {result}\n"
    return make_task(forward, rows=rows, cols=cols, inputs=f"[{', '.join(inputs)}]")


def make_task(
    body: str,
    *,
    inputs: str = "[torch.randn(rows, cols)]",
    init: str = "[]",
    rows: int = 33,
    cols: int = 70,
    training: bool = True,
    tolerance: Tolerance | None = None,
) -> Task:
    indented = "\n".join(f"    {line}" for line in body.strip("\n").splitlines())
    reference = (
        "import torch\nfrom torch import nn\n\nrows = 8\ncols = 8\n\n\n"
        f"class Model(nn.Module):\n{indented}\n\n\n"
        f"def get_inputs():\n    return {inputs}\n\n\n"
        f"def get_init_inputs():\n    return {init}\n"
    )
    sizes = (Size(name="rows", value=rows), Size(name="cols", value=cols))
    return Task(
        name="made",
        reference=reference,
        workloads=(Workload(name=f"rows={rows},cols={cols}", sizes=sizes),),
        tolerance=tolerance,
        training=training,
    )


def prepare(task: Task, workload: Workload | None = None) -> PreparedWorkload:
    """Return a workload of `task` on the CPU, the first unless another is given."""
    chosen = workload or task.workloads[0]
    return PreparedWorkload(task, chosen, device=torch.device("cpu"), memory_bytes=1 << 33)


SOFTMAX = """
def forward(self, x):
    return torch.softmax(x, dim=-1)
"""

SCALED = """
def __init__(self):
    super().__init__()
    self.weight = nn.Parameter(torch.ones(cols))
    self.bias = nn.Parameter(torch.zeros(cols))
    self.eps = 1e-5

def forward(self, x):
    return torch.tanh(x) * self.weight + self.bias
"""
