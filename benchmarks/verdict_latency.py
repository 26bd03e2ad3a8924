"""Time to a verdict for ten different candidates with a warm judge, built and cached.

Writes JSON with device, date and commit. Run: python benchmarks/verdict_latency.py [--out FILE]
"""

import argparse
import datetime
import json
import platform
import statistics
import subprocess
import time
from pathlib import Path

from kernel_foundry.sdk.client import Foundry, connect
from kernel_foundry.sdk.task_file import read_task

ROOT = Path(__file__).parents[1]

TASK = """\
import torch
from torch import nn

rows = 256
cols = 1024


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x) * 2.0


def get_inputs():
    return [torch.randn(rows, cols)]


def get_init_inputs():
    return []
"""

CANDIDATE = """\
```sycl
// variant VARIANT-STAMP
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void scale(const float* x, float* out, int count) {
  const int i = syclext::this_work_item::get_nd_item<1>().get_global_id(0);
  if (i < count) out[i] = (x[i] > 0.0f ? x[i] : 0.0f) * 2.0f;
}
```
```python
def launch(x, out):
    scale[cdiv(x.numel(), VARIANT), VARIANT](x, out, x.numel())
```
"""


def measure(foundry: Foundry, candidates: list[str], task_file: Path) -> list[dict[str, object]]:
    """Return seconds and stages of a verdict on each candidate."""
    rows: list[dict[str, object]] = []
    task = read_task(task_file)
    for text in candidates:
        started_s = time.perf_counter()
        verdict = foundry.evaluate(task, text)
        seconds = time.perf_counter() - started_s
        rows.append(
            {
                "seconds": seconds,
                "outcome": verdict.outcome.name,
                "object_cached": bool(verdict.compile and verdict.compile.cached),
                "stages_ms": {s.stage: s.wall_ms for s in verdict.stages},
            }
        )
    return rows


def main() -> None:
    """Measure and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    default = ROOT / "benchmarks" / "results" / "verdict_latency.json"
    parser.add_argument("--out", type=Path, default=default)
    out: Path = parser.parse_args().out
    out.parent.mkdir(parents=True, exist_ok=True)
    task_file = out.parent / "verdict_latency_task.py"
    task_file.write_text(TASK)
    # A stamp makes the sources new to the object cache in every run.
    stamp = str(time.time_ns())
    candidates = [
        CANDIDATE.replace("STAMP", stamp).replace("VARIANT", str(16 * (n + 1))) for n in range(10)
    ]
    with connect() as foundry:
        device = foundry.capabilities().devices[0]
        foundry.admit(read_task(task_file))
        built = measure(foundry, candidates, task_file)
        cached = measure(foundry, candidates, task_file)
    task_file.unlink()
    result = {
        "benchmark": "verdict_latency",
        "device": device.name,
        "driver": device.driver_version,
        "cores": device.compute_units,
        "python": platform.python_version(),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "commit": subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout.strip(),
        "median_seconds_built": statistics.median(float(str(r["seconds"])) for r in built),
        "median_seconds_cached": statistics.median(float(str(r["seconds"])) for r in cached),
        "built": built,
        "cached": cached,
    }
    out.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps({k: v for k, v in result.items() if k not in ("built", "cached")}))


if __name__ == "__main__":
    main()
