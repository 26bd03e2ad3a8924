"""Device memory of judging large tasks: the most that was seen, and two evaluations side by side.

The tasks are in `memory_cases`: ReLU on 1.6 G float32, an instance norm over 1.88 G, attention on
tensors of 2.1 GB; plain kernels of our own. What the whole device holds is read every few
milliseconds while a task is admitted and while its candidate is judged; contexts of all processes
count. On a CPU the sizes are small and the figure is the host's.
Run on a GPU host: python -m benchmarks.memory [--device cuda:0] [--out FILE]
"""

import argparse
import asyncio
import ctypes
import os
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeVar

from benchmarks.result_file import parse_for_device, write_result
from evaluator_svc.evaluator import LocalEvaluator
from evaluator_svc.settings import EvaluatorSettings
from kernel_foundry.domain.device import DeviceSpec
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.domain.request import EvaluationLimits, EvaluationRequest
from kernel_foundry.domain.task import Size, Task, Workload
from kernel_foundry.plan.candidate_text import split
from kernel_foundry.sdk.task_file import read_task

NAME = "memory"
CASES: Final = Path(__file__).parent / "memory_cases"
BARS_GB: Final = {"relu": 30.0, "instance_norm": 50.0}
"""Device memory that a case is judged within; on a GPU the evaluator is given no more."""
SMALL: Final = {
    "relu": {"ROWS": 64, "COLS": 512},
    "instance_norm": {"BATCH": 4, "CHANNELS": 3, "SIDE": 64},
    "attention": {"BATCH": 1, "HEADS": 2, "LENGTH": 64, "WIDTH": 64},
}
"""Sizes on a CPU."""
LIMITS: Final = EvaluationLimits(run_seconds=20.0, timing_seconds=1.0)
SMALL_LIMITS: Final = replace(LIMITS, timing_seconds=0.05)
"""On a CPU, whose times are not what this is about."""
_PAUSE_S: Final = 0.005
_SETTLED_S: Final = 1.0
"""Until processes that ended have given their memory back."""

T = TypeVar("T")
Read = Callable[[], int]


class _NvmlMemory(ctypes.Structure):
    _fields_ = [(name, ctypes.c_ulonglong) for name in ("total", "free", "used")]


def device_memory(index: int) -> Read:
    """Return what reads the bytes that are in use on a GPU.

    Raises:
        OSError: NVIDIA's management library is not there.
    """
    nvml = ctypes.CDLL("libnvidia-ml.so.1")
    nvml.nvmlInit_v2()
    handle = ctypes.c_void_p()
    if nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle)):
        raise OSError(f"no GPU {index}")

    def read() -> int:
        found = _NvmlMemory()
        nvml.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(found))
        return int(found.used)

    return read


def host_memory() -> int:
    """Return the bytes that are in use on the host."""
    lines = Path("/proc/meminfo").read_text(encoding="utf-8").splitlines()
    values = {name: int(rest.split()[0]) for name, _, rest in (x.partition(":") for x in lines)}
    return 1024 * (values["MemTotal"] - values["MemAvailable"])


@dataclass(slots=True)
class Peak:
    """The most that was in use, in bytes, and what was in use before."""

    before: int
    most: int

    def figures(self) -> dict[str, float]:
        """Return both in GB."""
        return {"peak_gb": self.most / 1e9, "before_gb": self.before / 1e9}


@contextmanager
def watched(read: Read) -> Iterator[Peak]:
    """Yield what becomes the most memory that was in use during the body."""
    before = read()
    peak, ended = Peak(before, before), threading.Event()

    def watch() -> None:
        while not ended.wait(_PAUSE_S):
            peak.most = max(peak.most, read())

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        ended.set()
        thread.join()


def load(name: str, *, is_small: bool) -> Task:
    """Return a task, at its own sizes or at those for a CPU."""
    task = read_task(CASES / f"{name}.py")
    if not is_small:
        return task
    sizes = tuple(Size(name=size, value=value) for size, value in SMALL[name].items())
    return replace(task, workloads=(Workload(name="small", sizes=sizes),))


class Bench:
    """Measures on one device."""

    def __init__(self, evaluator: LocalEvaluator, device: str, read: Read) -> None:
        self._evaluator = evaluator
        self._device = device
        self._read = read
        self._is_small = not device.startswith("cuda")
        self._language = "sycl" if self._is_small else "cuda"

    async def alone(self, name: str) -> dict[str, Any]:
        """Return what admitting a task and judging its candidate, twice, takes."""
        task = load(name, is_small=self._is_small)
        admission, admitted = await self._measured(
            f"{name}: admitted", self._evaluator.admit(task, self._device)
        )
        bar = BARS_GB.get(name)
        if not admission.admitted:
            print(f"{name} is refused: {'; '.join(admission.refusals)}", flush=True)
            return {**admitted, "refusals": admission.refusals, "bar_gb": bar, "holds": False}
        first, judged = await self._measured(f"{name}: judged", self._judged(task, name))
        again, second = await self._measured(f"{name}: judged again", self._judged(task, name))
        peak = max(judged["peak_gb"], second["peak_gb"])
        return {
            "tensors_gb": admission.workloads[0].minimal_bytes / 1e9,
            "reference_gb": admission.workloads[0].reference_bytes / 1e9,
            "admission": admitted,
            "evaluations": [{**judged, **_told(first)}, {**second, **_told(again)}],
            "peak_gb": peak,
            "bar_gb": bar,
            "holds": first.passed and again.passed and (bar is None or peak <= bar),
        }

    async def together(self, name: str, own_s: float) -> dict[str, Any]:
        """Return what two evaluations at once take; `own_s` is what one takes alone."""
        task = load(name, is_small=self._is_small)
        pair = asyncio.gather(self._judged(task, name), self._judged(task, name))
        both, figures = await self._measured(f"{name}: two at once", pair)
        told = [_told(evaluation) for evaluation in both]
        waited = max(item["waited_s"] for item in told)
        return {
            **figures,
            "evaluations": told,
            "alone_s": own_s,
            "waited_s": waited,
            "holds": all(e.passed for e in both) and waited <= own_s,
        }

    async def _judged(self, task: Task, name: str) -> Evaluation:
        text = (CASES / f"{name}.{self._language}.md").read_text(encoding="utf-8")
        limits = SMALL_LIMITS if self._is_small else LIMITS
        request = EvaluationRequest(
            task=task, device=self._device, source=split(text), limits=limits
        )
        return await self._evaluator.evaluate(request)

    async def _measured(self, what: str, work: Awaitable[T]) -> tuple[T, dict[str, float]]:
        await asyncio.sleep(0 if self._is_small else _SETTLED_S)
        with watched(self._read) as peak:
            started = time.perf_counter()
            result = await work
            seconds = time.perf_counter() - started
        print(f"{what}: {seconds:.1f} s, at most {peak.most / 1e9:.1f} GB in use", flush=True)
        return result, {"seconds": seconds, **peak.figures()}


def _told(evaluation: Evaluation) -> dict[str, Any]:
    """Return an evaluation's outcome and what its evidence says of memory."""
    facts = {fact.name: fact.value for fact in evaluation.evidence}
    return {
        "outcome": evaluation.outcome.value,
        "findings": [finding.message for finding in evaluation.findings],
        "seed_by_seed": "judged seed by seed for want of memory" in facts,
        "device_memory": facts.get("device memory", ""),
        "waited_s": float(facts.get("waited for device memory", "0 s").removesuffix(" s")),
        "stages_ms": {stage.stage: stage.wall_ms for stage in evaluation.stages},
    }


OpenBench = Callable[[str, int], AbstractAsyncContextManager[tuple[Bench, DeviceSpec]]]
"""See `opened`."""


@asynccontextmanager
async def opened(device: str, limit_bytes: int) -> AsyncIterator[tuple[Bench, DeviceSpec]]:
    """Yield a bench on a device of which no more than `limit_bytes` are used (0: all there is)."""
    kind, _, index = device.partition(":")
    read = device_memory(int(index)) if kind == "cuda" else host_memory
    with tempfile.TemporaryDirectory() as folder:
        settings = replace(
            EvaluatorSettings.from_environment(os.environ),
            device_kinds=(kind,),
            cache_dir=Path(folder),
            device_memory_bytes=limit_bytes,
        )
        evaluator = LocalEvaluator(settings)
        try:
            print("starting the judge and measuring the device", flush=True)
            capabilities = await evaluator.capabilities()
            spec = next(spec for spec in capabilities.devices if spec.id == device)
            yield Bench(evaluator, device, read), spec
        finally:
            await evaluator.close()


async def run(device: str, out: Path, open_bench: OpenBench = opened) -> dict[str, Any]:
    """Measure and write; return the figures. On a GPU each bar limits the evaluator of its case."""
    alone = {}
    limits = BARS_GB if device.startswith("cuda") else {}
    for name, limit_gb in limits.items():
        async with open_bench(device, int(1e9 * limit_gb)) as (bench, _spec):
            alone[name] = await bench.alone(name)
    async with open_bench(device, 0) as (bench, spec):
        for name in sorted(SMALL.keys() - limits.keys()):
            alone[name] = await bench.alone(name)
        own_s = max(item["seconds"] for item in alone["attention"]["evaluations"])
        together = await bench.together("attention", own_s)
    measured = {
        "usable_gb": spec.memory_bytes / 1e9,
        "alone": alone,
        "together": together,
        "holds": together["holds"] and all(item["holds"] for item in alone.values()),
    }
    write_result(out, NAME, spec, measured)
    return measured


def main() -> None:
    """Measure and say whether the bars hold."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    arguments = parse_for_device(parser, NAME)
    measured = asyncio.run(run(arguments.device, arguments.out))
    for name, item in measured["alone"].items():
        print(f"{name}: {item['peak_gb']:.1f} GB, bar {item['bar_gb']}, holds {item['holds']}")
    together = measured["together"]
    print(
        f"two at once: waited {together['waited_s']:.1f} s, one alone takes"
        f" {together['alone_s']:.1f} s, holds {together['holds']}; written to {arguments.out}"
    )


if __name__ == "__main__":
    main()
