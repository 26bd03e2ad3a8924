"""How well a time repeats over fresh runners, and how it agrees with Nsight Compute.

Kernels from 5 µs to 5 ms, each measured several times, every time in a runner of its own, and once
under ncu (gpu__time_duration.sum, --clock-control none, --cache-control all: caches emptied, as
before a timed call). Two bars: every median within 1 % of their median, and that within 3 % of
ncu's. The file is written anew after each measurement: a run that is cut leaves what it has.

Run on a GPU host, for a minute: python -m benchmarks.repeatability
For the README's figures: python -m benchmarks.repeatability --kernels all --times 20 --seconds 600
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.result_file import out_option, write_result
from kernel_foundry.domain.evaluation import Evaluation, Timing
from kernel_foundry.domain.profile import PROFILE_SECONDS
from kernel_foundry.sdk.client import Foundry, connect
from kernel_foundry.sdk.task_file import read_task

NAME = "repeatability"

POINTWISE = """\
```cuda
extern "C" __global__ void scale(const float4* __restrict__ x, float4* __restrict__ out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float4 v = x[i];
  v.x = fmaxf(v.x, 0.f) * 2.f; v.y = fmaxf(v.y, 0.f) * 2.f;
  v.z = fmaxf(v.z, 0.f) * 2.f; v.w = fmaxf(v.w, 0.f) * 2.f;
  out[i] = v;
}
```
```python
def launch(x, out):
    require(x.numel() % 4 == 0)
    n = x.numel() // 4
    scale[cdiv(n, 256), 256](x, out, n)
```
"""

ITERATED = """\
```cuda
extern "C" __global__ void iterate(const float* __restrict__ x, float* __restrict__ out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float v = x[i];
  const float step = x[i] * 2e-5f;
  for (int k = 0; k < 10000; ++k) v = v * 0.99999f + step;
  out[i] = v;
}
```
```python
def launch(x, out):
    iterate[cdiv(x.numel(), 256), 256](x, out, x.numel())
```
"""

POINTWISE_TASK = """\
import torch
from torch import nn

n = {n}


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x) * 2.0


def get_inputs():
    return [torch.randn(n)]


def get_init_inputs():
    return []
"""

ITERATED_TASK = POINTWISE_TASK.replace(
    "return torch.relu(x) * 2.0",
    "return x * (2.0 - 0.99999**10000)",
)

KERNELS = {
    "pointwise-1.5Mi": (POINTWISE_TASK, 3 << 19, POINTWISE),
    "pointwise-8Mi": (POINTWISE_TASK, 1 << 23, POINTWISE),
    "pointwise-64Mi": (POINTWISE_TASK, 1 << 26, POINTWISE),
    "pointwise-512Mi": (POINTWISE_TASK, 1 << 29, POINTWISE),
    "iterated-16Mi": (ITERATED_TASK, 1 << 24, ITERATED),
}
"""Task, number of floats and candidate of each."""
DEFAULT = ("pointwise-64Mi", "iterated-16Mi")
"""One that memory binds, one that arithmetic binds."""

SPREAD_BAR, NCU_BAR = 0.01, 0.03


class Measurement:
    """What has been measured of one kernel so far."""

    def __init__(self, foundry: Foundry, folder: Path, name: str) -> None:
        """Write the kernel's task into `folder`; nothing is measured yet."""
        text, size, self._candidate = KERNELS[name]
        task_file = folder / f"{name.replace('-', '_').replace('.', '_')}.py"
        task_file.write_text(text.format(n=size))
        # Ten thousand roundings in a row are more than the derived tolerance expects.
        task_file.with_suffix(".task.yaml").write_text("tolerance: {rtol: 1.0e-3, atol: 1.0e-6}\n")
        self._foundry, self._task, self.name = foundry, read_task(task_file), name
        self._timings: list[Timing] = []
        self._ncu_ns: float | None = None

    def profile(self) -> None:
        """Let ncu look at the kernel, after one evaluation that nothing is kept of but that."""
        verdict = self._evaluate(with_ncu=True)
        self._ncu_ns = _ncu_duration_ns(verdict)

    def again(self) -> None:
        """Measure once more, in a new runner."""
        timing = self._evaluate(with_ncu=False).workloads[0].timing
        assert timing is not None
        self._timings.append(timing)

    def _evaluate(self, *, with_ncu: bool) -> Evaluation:
        verdict = self._foundry.evaluate(
            self._task,
            self._candidate,
            device="cuda:0",
            fresh_baselines=with_ncu,
            profile_seconds=PROFILE_SECONDS if with_ncu else None,
        )
        assert verdict.passed, (self.name, verdict.outcome, verdict.findings)
        return verdict

    def row(self) -> dict[str, Any]:
        """Return the figures so far."""
        medians = [t.median_ns for t in self._timings]
        row: dict[str, Any] = {
            "kernel": self.name,
            "processes": len(medians),
            "medians_ns": medians,
            "means_ns": [statistics.fmean(t.samples_ns) for t in self._timings],
            "samples_each": [len(t.samples_ns) for t in self._timings],
            "discarded": sum(t.discarded_count for t in self._timings),
            "ncu_ns": self._ncu_ns,
        }
        if medians:
            median = statistics.median(medians)
            row["median_ns"] = median
            row["largest_deviation"] = max(abs(m / median - 1.0) for m in medians)
            row["over_ncu"] = median / self._ncu_ns if self._ncu_ns else None
        return row


def _ncu_duration_ns(verdict: Evaluation) -> float | None:
    for finding in verdict.findings:
        for evidence in finding.evidence:
            if evidence.name == "gpu_time_ns":
                return evidence.value
    return None


def _line(row: dict[str, Any]) -> str:
    if "median_ns" not in row:
        return f"{row['kernel']}: not measured"
    spread, over = row["largest_deviation"], row["over_ncu"]
    ncu = "ncu measured nothing"
    if over is not None:
        held = "held" if abs(over - 1.0) <= NCU_BAR else "MISSED"
        ncu = f"{over - 1.0:+.2%} against ncu's {row['ncu_ns'] / 1e3:.1f} µs ({held})"
    return (
        f"{row['kernel']}: {row['median_ns'] / 1e3:.2f} µs in {row['processes']} processes, "
        f"±{spread:.2%} ({'held' if spread <= SPREAD_BAR else 'MISSED'}); {ncu}"
    )


def main() -> None:
    """Measure and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kernels", nargs="+", choices=(*KERNELS, "all"), default=DEFAULT)
    parser.add_argument("--times", type=int, default=6, help="processes for each kernel")
    parser.add_argument("--seconds", type=float, default=50.0, help="then nothing new is begun")
    out_option(parser, NAME)
    options = parser.parse_args()
    names = tuple(KERNELS) if "all" in options.kernels else options.kernels
    until = time.monotonic() + options.seconds
    with tempfile.TemporaryDirectory() as folder, connect() as foundry:
        device = next(d for d in foundry.capabilities().devices if d.id == "cuda:0")
        kernels = [Measurement(foundry, Path(folder), name) for name in names]
        # By turns: what is cut short has every kernel, and a drift over minutes shows in all.
        turns = [k.profile for k in kernels] + [k.again for k in kernels] * options.times
        for done, turn in enumerate(turns, start=1):
            turn()
            rows = [kernel.row() for kernel in kernels]
            is_whole = done == len(turns)
            write_result(options.out, NAME, device, {"is_whole": is_whole, "kernels": rows})
            if time.monotonic() > until:
                break
    print("\n".join(map(_line, rows)), "" if is_whole else "cut: --seconds were over", sep="\n")


if __name__ == "__main__":
    main()
