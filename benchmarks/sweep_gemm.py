"""Our sweep of the 210-configuration GEMM space against exhaustive Kernel Tuner, cold caches.

Every configuration is verified by both. The two best are compared in Kernel Tuner's own times.
Run on a GPU host: python -m benchmarks.sweep_gemm [--skip-kernel-tuner] [--out FILE]
"""

import argparse
import os
import statistics
import tempfile
import time
from dataclasses import fields
from pathlib import Path
from typing import Any

from benchmarks.gemm_space import CANDIDATE, COUNT, KERNEL, SIZE, TASK, TUNE, WHERE
from benchmarks.result_file import out_option, write_result
from kernel_foundry.domain.device import DeviceSpec
from kernel_foundry.domain.evaluation import Setting
from kernel_foundry.domain.sweep import ConfigurationTimes, best_of
from kernel_foundry.sdk.client import connect
from kernel_foundry.sdk.task_file import read_task

NAME = "sweep_gemm"
_TIMES = fields(ConfigurationTimes)


def ours(folder: Path) -> tuple[DeviceSpec, dict[str, Any]]:
    """Sweep with a warm judge, an admitted task and empty object caches."""
    os.environ["KERNEL_FOUNDRY_CACHE_DIR"] = str(folder / "cache")
    task_file = folder / "gemm.py"
    task_file.write_text(TASK)
    task = read_task(task_file)
    with connect() as foundry:
        device = next(d for d in foundry.capabilities().devices if d.id.startswith("cuda:"))
        foundry.admit(task, device=device.id)
        started_s = time.perf_counter()
        results = foundry.sweep(task, CANDIDATE, device=device.id)
        seconds = time.perf_counter() - started_s
    best = best_of(tuple(results))
    assert best is not None, "the space holds correct configurations"
    return device, {
        "configurations": len(results),
        "seconds": seconds,
        "configurations_per_second": len(results) / seconds,
        "correct": sum(r.is_correct for r in results),
        "raced_out": sum(r.raced_out for r in results),
        "objects_cached": sum(r.cached for r in results),
        "total_ms": {f.name: sum(getattr(r.times, f.name) for r in results) for f in _TIMES},
        "best": _named(best.configuration),
        "best_ns": best.median_ns,
        "landscape": [
            {**_named(r.configuration), "ns": r.median_ns, "validity": r.validity.value}
            for r in results
        ],
    }


def kernel_tuner() -> dict[str, Any]:
    """Tune the same kernel exhaustively with Kernel Tuner, answer checked, no cache file."""
    import kernel_tuner as tuner
    import numpy as np

    random = np.random.default_rng(1)
    a, b = (random.standard_normal((SIZE, SIZE), dtype=np.float32) for _ in range(2))
    out = np.zeros_like(a)
    started_s = time.perf_counter()
    results, _environment = tuner.tune_kernel(
        "gemm",
        KERNEL,
        (SIZE, SIZE),
        [a, b, out, np.int32(SIZE)],
        TUNE,
        restrictions=list(WHERE),
        block_size_names=["BLOCK_X", "BLOCK_Y"],
        grid_div_x=["BLOCK_X", "TILE_X"],
        grid_div_y=["BLOCK_Y", "TILE_Y"],
        answer=[None, None, a @ b, None],
        atol=1e-2,
        lang="CUPY",
        strategy="brute_force",
        quiet=True,
    )
    seconds = time.perf_counter() - started_s
    timed = [r for r in results if isinstance(r.get("time"), float)]
    best = min(timed, key=lambda r: r["time"])
    return {
        "version": tuner.__version__,
        "configurations": len(results),
        "seconds": seconds,
        "configurations_per_second": len(results) / seconds,
        "correct": len(timed),
        "best": {name: best[name] for name in TUNE},
        "best_ns": 1e6 * best["time"],
        "landscape": [
            {
                **{n: r[n] for n in TUNE},
                "ns": 1e6 * r["time"] if isinstance(r.get("time"), float) else None,
            }
            for r in results
        ],
    }


def _named(configuration: tuple[Setting, ...]) -> dict[str, int]:
    return {s.name: int(s.value) for s in configuration}


def _compare(mine: dict[str, Any], theirs: dict[str, Any]) -> dict[str, Any]:
    """Return how our best configuration does in Kernel Tuner's landscape."""
    same = [r for r in theirs["landscape"] if all(r[n] == mine["best"][n] for n in TUNE)]
    return {
        "our_best_in_kernel_tuner_times": statistics.median(r["ns"] for r in same)
        / theirs["best_ns"],
        "speed_ratio": mine["configurations_per_second"] / theirs["configurations_per_second"],
    }


def main() -> None:
    """Measure and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--skip-kernel-tuner", action="store_true", help="only our own sweep")
    out_option(parser, NAME)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        device, mine = ours(Path(folder))
    assert mine["configurations"] == COUNT, "the space is 210 configurations"
    measured: dict[str, Any] = {"kernel_foundry": mine}
    if not options.skip_kernel_tuner:
        theirs = kernel_tuner()
        measured |= {"kernel_tuner": theirs, "comparison": _compare(mine, theirs)}
    write_result(options.out, NAME, device, measured)
    for name, value in measured.items():
        print(name, {k: v for k, v in value.items() if k != "landscape"})


if __name__ == "__main__":
    main()
