"""Time to a verdict on a CUDA kernel: this evaluator against torch's `load_inline` and events.

Both judge the same kernel, which differs a little each time so that nothing is cached: build,
comparison with the reference on three seeds, timing. The evaluator's judge is warm; the peer's
import of torch is told apart. An admission that is remembered from an earlier run has the stages
of that run, which take longer than its seconds. The tasks: ReLU on 256 x 1024 and on
4096 x 393216 float32.
Run on a GPU host: python -m benchmarks.verdict_vs_torch [--times 10] [--out FILE]
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.result_file import out_option, write_result
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.sdk.client import Foundry, connect
from kernel_foundry.sdk.task_file import read_task

NAME = "verdict_vs_torch"
DEVICE = "cuda:0"
SIZES = {"small": (256, 1024), "large": (4096, 393_216)}

TASK = """\
import torch
from torch import nn

rows = {rows}
cols = {cols}


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.rand(rows, cols) - 0.5]


def get_init_inputs():
    return []
"""

KERNEL = """\
// variant STAMP
extern "C" __global__ void relu(const float4* __restrict__ x, float4* __restrict__ out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float4 v = x[i];
  v.x = fmaxf(v.x, 0.f); v.y = fmaxf(v.y, 0.f); v.z = fmaxf(v.z, 0.f); v.w = fmaxf(v.w, 0.f);
  out[i] = v;
}
"""

PLAN = """\
def launch(x, out):
    require(x.numel() % 4 == 0)
    n = x.numel() // 4
    relu[cdiv(n, BLOCK_SIZE), BLOCK_SIZE](x, out, n)
"""

PEER = '''\
"""One verdict by torch's own means, as JSON on the last line."""

import json
import sys
import time

started = time.perf_counter()
import torch
from torch.utils.cpp_extension import load_inline

imported = time.perf_counter()
rows, cols, block, folder = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
kernel = sys.stdin.read()
torch.zeros(1, device="cuda")
ready = time.perf_counter()
module = load_inline(
    name="peer",
    cpp_sources="torch::Tensor run(torch::Tensor x);",
    cuda_sources=kernel
    + """
torch::Tensor run(torch::Tensor x) {
  auto out = torch::empty_like(x);
  const int n = x.numel() / 4;
  relu<<<(n + BLOCK - 1) / BLOCK, BLOCK>>>(
      reinterpret_cast<const float4*>(x.data_ptr<float>()),
      reinterpret_cast<float4*>(out.data_ptr<float>()), n);
  return out;
}
""".replace("BLOCK", str(block)),
    functions=["run"],
    build_directory=folder,
)
built = time.perf_counter()
for seed in range(3):
    torch.manual_seed(seed)
    x = torch.rand(rows, cols, device="cuda") - 0.5
    if not torch.allclose(module.run(x), torch.relu(x), rtol=1e-4, atol=1e-4):
        sys.exit("wrong result")
torch.cuda.synchronize()
checked = time.perf_counter()
spans_ns = []
for trial in range(105):
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    module.run(x)
    end.record()
    torch.cuda.synchronize()
    if trial >= 5:
        spans_ns.append(start.elapsed_time(end) * 1e6)
timed = time.perf_counter()
print(json.dumps({
    "seconds": timed - ready,
    "import_seconds": imported - started,
    "build_seconds": built - ready,
    "check_seconds": checked - built,
    "timing_seconds": timed - checked,
    "median_ns": sorted(spans_ns)[50],
}))
'''


def candidate(stamp: str, block: int) -> str:
    """Return a candidate that no cache has seen."""
    plan = PLAN.replace("BLOCK_SIZE", str(block))
    return f"```cuda\n{KERNEL.replace('STAMP', stamp)}```\n```python\n{plan}```\n"


def ours(foundry: Foundry, task_file: Path, times: int) -> list[dict[str, Any]]:
    """Return seconds and stages of a verdict on each of `times` different candidates."""
    task = read_task(task_file)
    rows: list[dict[str, Any]] = []
    for index in range(times):
        text = candidate(str(time.time_ns()), 32 * (index % 8 + 1))
        started = time.perf_counter()
        verdict = foundry.evaluate(task, text, device=DEVICE)
        rows.append(_row(verdict, time.perf_counter() - started))
    return rows


def measure(foundry: Foundry, folder: Path, name: str, times: int) -> dict[str, Any]:
    """Return what admission and verdicts on the task of one size took."""
    rows, cols = SIZES[name]
    task_file = folder / f"relu_{name}.py"
    task_file.write_text(TASK.format(rows=rows, cols=cols))
    started = time.perf_counter()
    admission = foundry.admit(read_task(task_file), device=DEVICE)
    admission_seconds = time.perf_counter() - started
    if not admission.admitted:
        raise SystemExit(f"{name}: {admission.refusals}")
    verdicts = ours(foundry, task_file, times)
    return {
        "rows": rows,
        "cols": cols,
        "admission_seconds": admission_seconds,
        "admission_stages_ms": {stage.stage: stage.wall_ms for stage in admission.stages},
        "median_seconds": median_seconds(verdicts),
        "median_build_seconds": median_seconds(verdicts, "build_seconds"),
        "verdicts": verdicts,
    }


def _row(verdict: Evaluation, seconds: float) -> dict[str, Any]:
    if not verdict.passed or verdict.compile is None:
        raise SystemExit(f"{verdict.outcome}: {[f.message for f in verdict.findings]}")
    timing = verdict.workloads[0].timing
    return {
        "seconds": seconds,
        "build_seconds": verdict.compile.compile_ns * 1e-9,
        "object_cached": verdict.compile.cached,
        "stages_ms": {stage.stage: stage.wall_ms for stage in verdict.stages},
        "median_ns": timing.median_ns if timing is not None else None,
        "samples": len(timing.samples_ns) if timing is not None else 0,
        "stop_reason": timing.stop_reason.value if timing is not None else "",
    }


def peer(size: tuple[int, int], times: int) -> list[dict[str, Any]]:
    """Return the same of torch's own means, each in a process and a folder of its own."""
    rows: list[dict[str, Any]] = []
    for _ in range(times):
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder) / "peer.py"
            program.write_text(PEER)
            build = Path(folder) / "build"
            build.mkdir()
            result = subprocess.run(
                [sys.executable, str(program), *map(str, size), "256", str(build)],
                input=KERNEL.replace("STAMP", str(time.time_ns())),
                capture_output=True,
                text=True,
                check=False,
            )
        if result.returncode:
            return [{"error": result.stderr.strip().splitlines()[-1:]}]
        rows.append(json.loads(result.stdout.strip().splitlines()[-1]))
    return rows


def median_seconds(rows: list[dict[str, Any]], key: str = "seconds") -> float | None:
    """Return the median of `key`, None when the rows are an error."""
    values = [float(row[key]) for row in rows if key in row]
    return statistics.median(values) if values else None


def main() -> None:
    """Measure and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=10, help="verdicts of ours for each size")
    parser.add_argument("--peer-times", type=int, default=2, help="verdicts of torch's")
    parser.add_argument("--sizes", nargs="+", choices=list(SIZES), default=list(SIZES))
    out_option(parser, NAME)
    options = parser.parse_args()
    measured: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder, connect() as foundry:
        device = next(d for d in foundry.capabilities().devices if d.id == DEVICE)
        for name in options.sizes:
            measured[name] = measure(foundry, Path(folder), name, options.times)
    # Only now: nobody holds the device's memory any more.
    for name in options.sizes:
        verdicts = peer(SIZES[name], options.peer_times)
        measured[name]["peer"] = {
            "how": "torch load_inline, allclose on three seeds, 100 pairs of events",
            "median_seconds": median_seconds(verdicts),
            "median_build_seconds": median_seconds(verdicts, "build_seconds"),
            "verdicts": verdicts,
        }
    write_result(options.out, NAME, device, measured)
    for name in options.sizes:
        ours_seconds = measured[name]["median_seconds"]
        print(name, ours_seconds, "s; torch:", measured[name]["peer"]["median_seconds"], "s")


if __name__ == "__main__":
    main()
