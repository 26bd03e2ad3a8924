"""Latency, start-up time and memory of an archive service with 100,000 evaluations.

Fills a store, starts the service on it as a process of its own, and works as a loop does over a
UNIX socket: select, then add, one after the other. An evaluation is on disk when the call returns.

Run: python -m benchmarks.archive_latency [--evaluations 100000] [--rounds 500] [--out FILE]
"""

import argparse
import asyncio
import json
import os
import re
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.archive_runs import RecordedRun, Variants, fill, read_recorded, serving
from benchmarks.result_file import out_option, write_host_result
from kernel_foundry.rpc.archive import RemoteArchive

NAME = "archive_latency"

RUN = "filled"

_TELL_BYTES = 40_000
"""Pages of the log that an evaluation fills, about."""


async def measure(
    store_url: str, folder: Path, recorded: RecordedRun, rounds: int
) -> dict[str, Any]:
    """Return what was measured on one service on a filled store."""
    target = f"unix:{folder / 'archive.sock'}"
    started_s = time.perf_counter()
    async with serving(store_url, target) as process:
        serving_s = time.perf_counter() - started_s
        archive = RemoteArchive(target)
        await archive.select(RUN)
        first_select_s = time.perf_counter() - started_s
        label = f"measured at {time.time()}"  # a kept store may have been measured before
        variants = Variants(recorded, seed=2, label=label)
        select_ms, add_ms = [], []
        for i in range(rounds):
            before_s = time.perf_counter()
            selection = await archive.select(RUN)
            selected_s = time.perf_counter()
            parents = (selection.parent.candidate.digest,) if selection.parent else ()
            candidate, evaluation = variants.next(parents)
            asked_s = time.perf_counter()
            await archive.add(
                RUN,
                candidate,
                evaluation,
                request_id=f"{label} {i}",
                selection=selection.sequence,
            )
            add_ms.append((time.perf_counter() - asked_s) * 1e3)
            select_ms.append((selected_s - before_s) * 1e3)
        evaluation_count = (await archive.get_run(RUN)).evaluation_count
        memory = _memory_mib(process.pid)
        await archive.close()
    return {
        "evaluation_count": evaluation_count,
        "seconds_until_serving": serving_s,
        "seconds_until_first_select": first_select_s,
        "select_ms": _summary(select_ms),
        "add_ms": _summary(add_ms),
        "select_and_add_ms": _summary([s + t for s, t in zip(select_ms, add_ms, strict=True)]),
        **memory,
    }


def _summary(values: list[float]) -> dict[str, float]:
    hundredths = statistics.quantiles(values, n=100)
    return {
        "median": statistics.median(values),
        "p95": hundredths[94],
        "p99": hundredths[98],
        "max": max(values),
    }


def _memory_mib(pid: int) -> dict[str, float]:
    """Return resident memory of a process, now and at its highest."""
    status = Path(f"/proc/{pid}/status").read_text()
    found = {
        name: int(kib) / 1024 for name, kib in re.findall(r"(VmRSS|VmHWM):\s+(\d+) kB", status)
    }
    return {"resident_mib": found["VmRSS"], "resident_peak_mib": found["VmHWM"]}


def _disk_sync_ms(folder: Path) -> float:
    """Return the median time of a bare write and sync of what an evaluation writes: its floor."""
    seconds = []
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        for _ in range(100):
            file.seek(0)
            file.write(bytes(_TELL_BYTES))
            before_s = time.perf_counter()
            os.fdatasync(file.fileno())
            seconds.append(time.perf_counter() - before_s)
    return statistics.median(seconds) * 1e3


def main() -> None:
    """Measure and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--evaluations", type=int, default=100_000, help="evaluations added before")
    parser.add_argument("--rounds", type=int, default=500, help="selections and additions measured")
    parser.add_argument("--store", type=Path, help="keep the filled store here, or take it")
    out_option(parser, NAME)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file: Path = options.store or folder / "runs.db"
        store_url = f"sqlite:///{file}"
        recorded = read_recorded(folder)
        filling: dict[str, float] = {}
        if not file.exists():
            started_s = time.perf_counter()
            fill(store_url, recorded, name=RUN, count=options.evaluations)
            filling["seconds_to_fill"] = time.perf_counter() - started_s
        measured = asyncio.run(measure(store_url, folder, recorded, options.rounds))
        measured |= {
            **filling,
            "store_mib": file.stat().st_size / 2**20,
            "disk_sync_ms": _disk_sync_ms(file.parent),
        }
    write_host_result(options.out, NAME, measured)
    print(json.dumps(measured, indent=1))


if __name__ == "__main__":
    main()
