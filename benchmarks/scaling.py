"""Candidates a minute with 1, 2, 4 … GPUs of one host: one evaluator, spread by itself.

Run on a GPU host: python -m benchmarks.scaling [--candidates 96] [--out FILE]
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.result_file import ROOT, out_option, write_result
from evaluator_svc.evaluator import LocalEvaluator
from evaluator_svc.settings import EvaluatorSettings
from kernel_foundry.domain.request import EvaluationRequest
from kernel_foundry.plan.candidate_text import split
from kernel_foundry.sdk.client import connect
from kernel_foundry.sdk.task_file import read_task

NAME = "scaling"

TASK = """\
import torch
from torch import nn

rows = 4096
cols = 4096


class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1)


def get_inputs():
    return [torch.randn(rows, cols)]


def get_init_inputs():
    return []
"""

CANDIDATE = """\
```cuda
// STAMP
extern "C" __global__ void softmax(const float* __restrict__ x, float* __restrict__ out, int cols) {
  __shared__ float part[32];
  const float* row = x + (size_t)blockIdx.x * cols;
  float top = -INFINITY;
  for (int i = threadIdx.x; i < cols; i += blockDim.x) top = fmaxf(top, row[i]);
  for (int d = 16; d; d /= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, d));
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = top;
  __syncthreads();
  top = part[0];
  for (int i = 1; i < blockDim.x / 32; ++i) top = fmaxf(top, part[i]);
  __syncthreads();
  float sum = 0.f;
  for (int i = threadIdx.x; i < cols; i += blockDim.x) sum += expf(row[i] - top);
  for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = 0.f;
  for (int i = 0; i < blockDim.x / 32; ++i) sum += part[i];
  float* to = out + (size_t)blockIdx.x * cols;
  for (int i = threadIdx.x; i < cols; i += blockDim.x) to[i] = expf(row[i] - top) / sum;
}
```
```python
def launch(x, out):
    softmax[x.shape[0], 256](x, out, x.shape[1])
```
"""


async def _evaluate_all(count: int, gpus: int) -> dict[str, float]:
    """Return the seconds that `count` different candidates take, after a warm-up.

    With them the mean time of a verdict's stages: what is beyond them is waiting for the device and
    for processes.
    """
    evaluator = LocalEvaluator(EvaluatorSettings.from_environment(os.environ))
    with tempfile.TemporaryDirectory() as folder:
        task_file = Path(folder) / "softmax.py"
        task_file.write_text(TASK)
        task = read_task(task_file)
    await evaluator.capabilities()
    await evaluator.admit(task, "cuda:0")

    stages_ms: list[float] = []
    # As many as a loop keeps in flight: every device has its next candidate waiting.
    room = asyncio.Semaphore(4 * gpus)

    async def one(stamp: str) -> None:
        text = CANDIDATE.replace("STAMP", stamp)
        request = EvaluationRequest(task=task, device="cuda", source=split(text))
        async with room:
            verdict = await evaluator.evaluate(request)
        stages_ms.append(sum(stage.wall_ms for stage in verdict.stages))
        assert verdict.passed, (verdict.outcome, verdict.findings)

    run = str(time.time_ns())
    await asyncio.gather(*(one(f"warm-up {run} {i}") for i in range(4 * gpus)))
    stages_ms.clear()
    started_s = time.perf_counter()
    await asyncio.gather(*(one(f"{run} {i}") for i in range(count)))
    seconds = time.perf_counter() - started_s
    await evaluator.close()
    return {"seconds": seconds, "mean_stages_ms": statistics.fmean(stages_ms)}


def _child(count: int, gpus: int) -> dict[str, float]:
    """Measure in a process that sees the first GPUs only."""
    seen = {"CUDA_VISIBLE_DEVICES": ",".join(map(str, range(gpus)))}
    numbers = ("--child", str(gpus), "--candidates", str(count))
    done = subprocess.run(
        (sys.executable, "-m", "benchmarks.scaling", *numbers),
        env={**os.environ, **seen},
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout
    measured: dict[str, float] = json.loads(done.splitlines()[-1])
    return {"gpus": gpus, **measured, "candidates_per_minute": 60 * count / measured["seconds"]}


def main() -> None:
    """Measure and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--candidates", type=int, default=96, help="for each number of GPUs")
    parser.add_argument("--child", type=int, default=0, help=argparse.SUPPRESS)
    out_option(parser, NAME)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(asyncio.run(_evaluate_all(options.candidates, options.child))))
        return
    with connect() as foundry:
        devices = [d for d in foundry.capabilities().devices if d.id.startswith("cuda:")]
    counts = [n for n in (1, 2, 4, 8) if n <= len(devices)]
    rows: list[dict[str, float]] = []
    # One and all come first, and each is written at once: devices are lent for minutes.
    for count in sorted(counts, key=lambda n: (n not in (1, counts[-1]), n)):
        row = _child(options.candidates, count)
        alone = rows[0] if rows else row
        row["speedup"] = row["candidates_per_minute"] / alone["candidates_per_minute"]
        rows.append(row)
        print(row, flush=True)
        told = sorted(rows, key=lambda row: row["gpus"])
        what = {"candidates": options.candidates, "runs": told}
        write_result(options.out, NAME, devices[0], what)


if __name__ == "__main__":
    main()
