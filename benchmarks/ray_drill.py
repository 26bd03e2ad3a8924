"""Six evaluators behind Ray Serve against the same six without: verdicts a second, side by side.

Each judges by the null device, in processes of its own as any evaluator does. First a client's
fleet of six served evaluators judges as many candidates at a time as asked, then one application of
six replicas. Both have judged before the clock starts. On a machine of few cores the verdicts
themselves are what takes the time, and the figures say what Ray adds to it.

Run: python -m benchmarks.ray_drill [--seconds 30] [--at-once 12] [--out FILE]
"""

import argparse
import asyncio
import itertools
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from benchmarks.free_port import free_port
from benchmarks.result_file import out_option, write_host_result
from kernel_foundry.domain.candidate import KernelSource
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.request import EvaluationRequest
from kernel_foundry.domain.task import Task, Workload
from kernel_foundry.ports import Evaluator
from kernel_foundry.rpc.connection import CallOptions, RetryPolicy
from kernel_foundry.rpc.evaluator import RemoteEvaluator
from kernel_foundry.rpc.readiness import wait_until_serving
from kernel_foundry.sdk.fleet.fleet import Fleet
from kernel_foundry.sdk.fleet.membership import FixedSource

NAME: Final = "ray_drill"
EVALUATORS: Final = 6
START_S: Final = 300.0
_ONCE: Final = CallOptions(retry=RetryPolicy(attempts=1))
_TASK: Final = Task(
    name="double",
    reference=(
        "import torch\nimport torch.nn as nn\n\n\n"
        "class Model(nn.Module):\n    def forward(self, x):\n        return x * 2.0 + 1.0\n\n\n"
        "def get_inputs():\n    return [torch.rand(4, 64)]\n\n\n"
        "def get_init_inputs():\n    return []\n"
    ),
    workloads=(Workload(name="default"),),
)
_CODE: Final = """\
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void twice(const float* x, float* out, int count) {{  // {number}
  const int i = syclext::this_work_item::get_nd_item<1>().get_global_id(0);
  if (i < count) out[i] = 2.0f * x[i] + 1.0f;
}}
"""
_PLAN: Final = "def launch(x, out):\n    twice[cdiv(x.numel(), 64), 64](x, out, x.numel())"
_ARGUMENTS: Final = "{device: 'null', cpus: 0.1, unsafe_no_sandbox: true"


@asynccontextmanager
async def served(folder: Path) -> AsyncIterator[Evaluator]:
    """A fleet of six evaluators that are served as processes."""
    ports = [free_port() for _ in range(EVALUATORS)]
    options = ("--device", "null", "--unsafe-no-sandbox")
    processes = []
    with (folder / "served.log").open("w") as log:
        addresses = tuple(f"127.0.0.1:{port}" for port in ports)
        try:
            for address in addresses:  # the first measures the device, for all
                words = ("-m", "evaluator_svc", "--listen", address, *options)
                processes.append(
                    await asyncio.create_subprocess_exec(sys.executable, *words, stderr=log)
                )
                await wait_until_serving(address, timeout_s=START_S)
            fleet = Fleet(FixedSource(addresses), lambda a: RemoteEvaluator(a, _ONCE))
            yield fleet
            await fleet.close()
        finally:
            for process in processes:
                process.terminate()
            await asyncio.gather(*(process.wait() for process in processes))


@asynccontextmanager
async def behind_ray(folder: Path) -> AsyncIterator[Evaluator]:
    """One application of six replicas."""
    file, port = folder / "applications.yaml", free_port()
    count = f"min_replicas: {EVALUATORS}, max_replicas: {EVALUATORS}"
    file.write_text(f"applications:\n  drill: {_ARGUMENTS}, {count}}}\n")
    words = ("-m", "kernel_foundry.cli", "fleet", "up", "--file", str(file))
    with (folder / "ray.log").open("w") as log:
        process = await asyncio.create_subprocess_exec(
            sys.executable, *words, "--port", str(port), stdout=subprocess.PIPE, stderr=log
        )
        try:
            assert process.stdout is not None
            if not await process.stdout.readline():
                raise RuntimeError((folder / "ray.log").read_text())
            evaluator = RemoteEvaluator(f"127.0.0.1:{port}/drill", _ONCE)
            yield evaluator
            await evaluator.close()
        finally:
            process.send_signal(signal.SIGTERM)
            await process.wait()


async def throughput(
    evaluator: Evaluator, seconds: float, at_once: int, numbers: "itertools.count[int]"
) -> dict[str, Any]:
    """Return verdicts a second, and how long one took, with so many under way."""

    async def judge() -> float:
        code = _CODE.format(number=next(numbers))
        source = KernelSource(language=Language.SYCL, device_code=code, plan=_PLAN)
        began_s = time.monotonic()
        verdict = await evaluator.evaluate(
            EvaluationRequest(task=_TASK, device="null", source=source)
        )
        outcomes[verdict.outcome.name] += 1
        return time.monotonic() - began_s

    async def loop(end_s: float) -> None:
        while time.monotonic() < end_s:
            took_s.append(await judge())

    outcomes: Counter[str] = Counter()
    took_s: list[float] = []
    # Every evaluator admits the task and starts what it starts once.
    await asyncio.gather(*(judge() for _ in range(4 * at_once)))
    outcomes.clear()
    began_s, began_cpu_s = time.monotonic(), _busy_s()
    await asyncio.gather(*(loop(began_s + seconds) for _ in range(at_once)))
    took = time.monotonic() - began_s
    return {
        "verdicts_per_s": len(took_s) / took,
        "median_s": statistics.median(took_s),
        "busy_cores": (_busy_s() - began_cpu_s) / took,
        "outcomes": dict(outcomes),
    }


async def drill(folder: Path, seconds: float, at_once: int) -> dict[str, Any]:
    """Return the throughput without Ray and with it, one after the other."""
    found: dict[str, Any] = {"evaluators": EVALUATORS, "at_once": at_once, "seconds": seconds}
    numbers = itertools.count()
    for name, place in (("fleet", served), ("ray", behind_ray)):
        async with place(folder) as evaluator:
            found[name] = await throughput(evaluator, seconds, at_once, numbers)
    return found


def _busy_s() -> float:
    """Seconds for which the machine's cores were busy since it started, of all processes."""
    first = Path("/proc/stat").read_text(encoding="ascii").splitlines()[0]
    ticks = [int(part) for part in first.split()[1:]]
    idle = ticks[3] + ticks[4]
    return (sum(ticks[:8]) - idle) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Drill and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--at-once", type=int, default=12)
    out_option(parser, NAME)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for name in ("DATA_DIR", "CACHE_DIR"):
            os.environ[f"KERNEL_FOUNDRY_{name}"] = folder
        found = asyncio.run(drill(Path(folder), arguments.seconds, arguments.at_once))
    write_host_result(arguments.out, NAME, found)


if __name__ == "__main__":
    main()
