"""What candidates cost that crash, hang or ask for too much, and what the next one notices.

Each bad candidate is followed by a good one; the judge must be the same process throughout.
Run on a GPU host: python -m benchmarks.bad_candidates [--out FILE]
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.result_file import out_option, write_result
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.domain.request import EvaluationLimits
from kernel_foundry.domain.task import Task
from kernel_foundry.sdk.client import Foundry, connect
from kernel_foundry.sdk.task_file import read_task

NAME = "bad_candidates"
RUN_SECONDS = 2.0

TASK = """\
import torch
from torch import nn

n = 1 << 20


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x) * 2.0


def get_inputs():
    return [torch.randn(n)]


def get_init_inputs():
    return []
"""

KERNEL = """\
extern "C" __global__ void scale(const float* x, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = fmaxf(x[i], 0.f) * 2.f;
}
"""
LAUNCH = "    scale[cdiv(x.numel(), 256), 256](x, out, x.numel())\n"


def candidate(kernel: str = KERNEL, launch: str = LAUNCH) -> str:
    """Return the candidate with a stamp that no cache knows."""
    stamp = f"// {time.time_ns()}\n"
    return f"```cuda\n{stamp}{kernel}```\n```python\ndef launch(x, out):\n{launch}```\n"


BAD = {
    "illegal address": (KERNEL.replace("out[i]", "out[i + (1ll << 40)]"), LAUNCH),
    "never ends": (
        KERNEL.replace("if (i < n)", "while (*(volatile const float*)x < 1e30f) {}\n  if (i < n)"),
        LAUNCH,
    ),
    "asks for 200 GB": (
        KERNEL.replace("int n)", "int n, float* spare)"),
        '    spare = empty((50000000000,), "float32")\n'
        "    scale[cdiv(x.numel(), 256), 256](x, out, x.numel(), spare)\n",
    ),
    "too much shared memory, in the plan": (
        KERNEL,
        LAUNCH.replace("256]", "256, 400000]"),
    ),
    "too much shared memory, in the kernel": (
        KERNEL.replace("  const int i", "  extern __shared__ float spare[];\n"
                       "  __shared__ float fixed[8192];\n  fixed[threadIdx.x] = x[0];\n"
                       "  spare[threadIdx.x] = fixed[threadIdx.x];\n  const int i"),
        LAUNCH.replace("256]", "256, device.shared_bytes]"),
    ),
    "grid of zero": (KERNEL, LAUNCH.replace("cdiv(x.numel(), 256)", "0")),
    "mistyped pointer": (KERNEL.replace("float* out", "double* out"), LAUNCH),
}  # fmt: skip
_DEADLINES = {"never ends": RUN_SECONDS}


def judge_pid(verdict: Evaluation) -> str:
    """Return the judge's process id as the verdict's evidence tells it; "" when it does not."""
    return next((f.value for f in verdict.evidence if f.name == "judge process"), "")


def measure(foundry: Foundry, task: Task) -> dict[str, Any]:
    """Return what each candidate became, what it cost, and how the next one did."""

    def evaluate(text: str) -> tuple[Evaluation, float]:
        started_s = time.perf_counter()
        limits = EvaluationLimits(run_seconds=RUN_SECONDS)
        verdict = foundry.evaluate(task, text, device="cuda:0", limits=limits)
        return verdict, time.perf_counter() - started_s

    warm = [evaluate(candidate()) for _ in range(5)]
    usual_s = statistics.median(seconds for _, seconds in warm)
    judge = judge_pid(warm[-1][0])
    rows = []
    for name, (kernel, launch) in BAD.items():
        verdict, seconds = evaluate(candidate(kernel, launch))
        after, after_s = evaluate(candidate())
        rows.append(
            {
                "candidate": name,
                "outcome": verdict.outcome.name,
                "finding": verdict.findings[0].message if verdict.findings else "",
                "seconds": seconds,
                "seconds_beyond_deadline": seconds - _DEADLINES.get(name, 0.0),
                "next_outcome": after.outcome.name,
                "next_seconds": after_s,
                "next_seconds_beyond_usual": after_s - usual_s,
                "same_judge": judge_pid(after) == judge,
            }
        )
    return {"usual_seconds": usual_s, "run_seconds": RUN_SECONDS, "candidates": rows}


def main() -> None:
    """Measure and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    out_option(parser, NAME)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, connect() as foundry:
        task_file = Path(folder) / "scaled_relu.py"
        task_file.write_text(TASK)
        device = next(d for d in foundry.capabilities().devices if d.id == "cuda:0")
        measured = measure(foundry, read_task(task_file))
    write_result(options.out, NAME, device, measured)
    for row in measured["candidates"]:
        print(row)


if __name__ == "__main__":
    main()
