"""Admits the tasks of `benchmarks.suite`, one after the other: share, time and memory of each.

Writes JSON with device, date and commit after every task, and goes on where an earlier call ended.
Caches are empty at first. `stages_s` tells where an admission's time goes; what is missing from
`seconds` is the start of the judge and the device's peaks, which the first one waits for. With
--again each task is admitted twice, the second time as another task of the same text but for a
comment: by then kernels are loaded and compiled. Peak memory is that of the whole device, all
processes, sampled ten times a second.

Run: python -m benchmarks.admit_suite --device cuda:0 [--memory-limit 80GB] [--seconds 560]
     [--only PATTERN] [--small] [--again] [--write FOLDER] [--out FILE]
"""

import argparse
import dataclasses
import fnmatch
import json
import os
import re
import shutil
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from benchmarks.result_file import parse_for_device, write_result
from benchmarks.suite import TASKS, SuiteTask
from kernel_foundry.domain.admission import Admission
from kernel_foundry.domain.task import Task
from kernel_foundry.errors import KernelFoundryError
from kernel_foundry.sdk.client import Foundry, connect

_UNITS: Final = {"": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "GIB": 1 << 30, "MIB": 1 << 20}


class DeviceMemory:
    """The most memory of a GPU that is in use at any time; 0 where nvidia-smi is not found."""

    def __init__(self, index: int) -> None:
        program = shutil.which("nvidia-smi")
        command = [str(program), f"--id={index}", "--query-gpu=memory.used", "-lms", "100",
                   "--format=csv,noheader,nounits"]  # fmt: skip
        self._peak_bytes = 0
        self._process = (
            subprocess.Popen(command, stdout=subprocess.PIPE, text=True) if program else None
        )
        self._reader = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> Self:
        self._reader.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def take_peak(self) -> int:
        """Return the most bytes since this was last asked."""
        peak, self._peak_bytes = self._peak_bytes, 0
        return peak

    def _read(self) -> None:
        for line in self._process.stdout or () if self._process is not None else ():
            if line.strip().isdigit():
                self._peak_bytes = max(self._peak_bytes, int(line) << 20)


def byte_count(text: str) -> int:
    """Return a number of bytes written as "80GB" or "75 GiB"."""
    match = re.fullmatch(r"([\d.]+)\s*([A-Za-z]*)", text.strip())
    if match is None or match[2].upper() not in _UNITS:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a size such as 80GB")
    return int(float(match[1]) * _UNITS[match[2].upper()])


def admitted(
    foundry: Foundry,
    item: SuiteTask,
    memory: DeviceMemory,
    arguments: argparse.Namespace,
) -> dict[str, Any]:
    """Admit one task; return what is to be told of it."""
    memory.take_peak()
    row: dict[str, Any] = {"name": item.name, "expected": not item.is_degenerate}
    task = item.task(small=arguments.small)
    row |= _admitted(foundry, task, arguments.device)
    row["peak_gb"] = round(memory.take_peak() / 1e9, 2)
    if arguments.again:
        other = dataclasses.replace(task, reference=f"{task.reference}# again\n")
        row["again"] = _admitted(foundry, other, arguments.device)
    return row


def _admitted(foundry: Foundry, task: Task, device: str) -> dict[str, Any]:
    started = time.perf_counter()
    try:
        facts = _facts(foundry.admit(task, device=device))
    except KernelFoundryError as error:
        facts = {"admitted": False, "refusals": [f"{type(error).__name__}: {error.message}"]}
    return facts | {"seconds": round(time.perf_counter() - started, 2)}


def _facts(admission: Admission) -> dict[str, Any]:
    workloads = admission.workloads[:1]
    return {
        "admitted": admission.admitted,
        "refusals": list(admission.refusals),
        "warnings": list(admission.warnings),
        "rtol": admission.tolerance.rtol,
        "stages_s": {s.stage: round(s.wall_ms / 1e3, 2) for s in admission.stages},
        "baselines_ms": {
            b.name: round(b.timing.median_ns / 1e6, 4) for w in workloads for b in w.baselines
        },
        "scatter": {b.name: round(b.scatter, 4) for w in workloads for b in w.baselines},
    }


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the figures of all tasks together."""
    right = [row for row in rows if row["admitted"] == row["expected"]]
    return {
        "task_count": len(TASKS),
        "tried": len(rows),
        "admitted": sum(row["admitted"] for row in rows),
        "as_expected": len(right),
        "unexpected": [row["name"] for row in rows if row not in right],
        "seconds": round(sum(row["seconds"] for row in rows), 1),
        "slowest": max(((row["seconds"], row["name"]) for row in rows), default=(0.0, "")),
        "peak_gb": max((row["peak_gb"] for row in rows), default=0.0),
    }


def write_files(folder: Path) -> None:
    """Write every task as the file that `kfoundry` takes."""
    folder.mkdir(parents=True, exist_ok=True)
    for item in TASKS:
        (folder / f"{item.name}.py").write_text(item.reference)


def admit_all(
    foundry: Foundry, arguments: argparse.Namespace, memory: DeviceMemory
) -> list[dict[str, Any]]:
    """Admit what the result file lacks, as far as the time goes; return all its rows."""
    started = time.perf_counter()
    rows = _known(arguments.out)
    known = {row["name"] for row in rows}
    kind = arguments.device.partition(":")[0]
    device = next(d for d in foundry.capabilities().devices if d.id.startswith(kind))
    limits = {"memory_limit_gb": arguments.memory_limit / 1e9, "small": arguments.small}
    for item in TASKS:
        if item.name in known or not fnmatch.fnmatch(item.name, arguments.only):
            continue
        if time.perf_counter() - started > arguments.seconds:
            break
        row = admitted(foundry, item, memory, arguments)
        rows.append(row)
        told = "admitted" if row["admitted"] else f"refused: {row['refusals'][:1]}"
        print(f"{item.name}: {told}, {row['seconds']} s, {row['peak_gb']} GB", flush=True)
        for each in filter(None, (row, row.get("again"))):
            print(f"  {each['seconds']} s: {each.get('stages_s')}", flush=True)
        measured = {**limits, "summary": summary(rows), "tasks": rows}
        write_result(arguments.out, "admit_suite", device, measured)
    return rows


def _known(out: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(out.read_text())["tasks"] if out.exists() else []
    return rows


def main() -> None:
    """Admit the suite, or write its files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memory-limit", type=byte_count, default=0, help="as if it had no more")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no task after")
    parser.add_argument("--only", default="*", help="names, as a shell pattern")
    parser.add_argument("--small", action="store_true", help="sizes for any machine")
    parser.add_argument("--again", action="store_true", help="admit each task a second time")
    parser.add_argument("--write", type=Path, help="only write the task files into this folder")
    arguments = parse_for_device(parser, "admit_suite")
    if arguments.write:
        write_files(arguments.write)
        return
    index = int(arguments.device.partition(":")[2] or 0)
    with tempfile.TemporaryDirectory() as cache, DeviceMemory(index) as memory:
        # Nothing of an earlier admission is of use here.
        os.environ["KERNEL_FOUNDRY_CACHE_DIR"] = cache
        os.environ["KERNEL_FOUNDRY_DEVICE_MEMORY_BYTES"] = str(arguments.memory_limit)
        with connect() as foundry:
            rows = admit_all(foundry, arguments, memory)
    print(json.dumps(summary(rows)))


if __name__ == "__main__":
    main()
