"""What contexts cost on one GPU: bare, under MPS, and in verdicts by how many runners wait.

A candidate gets a process of its own, and with it a context. *Bare*: processes that open the device
and end, so many at once. *MPS*: the same as clients of a server that shares one context; only
measured, since what one client's kernel breaks ends the others too. *Spares*: verdicts a minute of
one evaluator by how many runners wait with a context ready.

Run on a GPU host: python -m benchmarks.context_starts [--candidates 48] [--spares 0 3] [--out FILE]
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from benchmarks.result_file import out_option, write_result
from benchmarks.scaling import child
from kernel_foundry.sdk.client import connect

NAME: Final = "context_starts"
_STARTS: Final = 32
"""Processes of each measurement."""
_AT_ONCE: Final = (1, 4, 8)
_OPEN: Final = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
context = ctypes.c_void_p()
assert cuda.cuInit(0) == 0
assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
"""
_MPS: Final = "nvidia-cuda-mps-control"


def starts_per_second(at_once: int, environment: Mapping[str, str]) -> float:
    """Return how many processes a second open the device and end."""
    command = (sys.executable, "-I", "-S", "-c", _OPEN)

    def start(_: int) -> None:
        subprocess.run(command, env=dict(environment), check=True)

    with ThreadPoolExecutor(at_once) as pool:
        list(pool.map(start, range(at_once)))
        started_s = time.perf_counter()
        list(pool.map(start, range(_STARTS)))
        return _STARTS / (time.perf_counter() - started_s)


@contextmanager
def mps_server() -> Iterator[dict[str, str]]:
    """Start an MPS server of our own; gives the variables that make a process its client."""
    with tempfile.TemporaryDirectory() as folder:
        own = {"CUDA_MPS_PIPE_DIRECTORY": folder, "CUDA_MPS_LOG_DIRECTORY": folder}
        environment = {**os.environ, **own}
        subprocess.run((_MPS, "-d"), env=environment, check=True, stdout=subprocess.DEVNULL)
        try:
            yield environment
        finally:
            subprocess.run((_MPS,), input=b"quit\n", env=environment, check=False, timeout=30)


def under_mps() -> dict[str, Any]:
    """Return the starts a second under MPS, or why there are none."""
    if shutil.which(_MPS) is None:
        return {"reason": f"{_MPS} is not installed"}
    try:
        with mps_server() as environment:
            return {str(n): starts_per_second(n, environment) for n in _AT_ONCE}
    except (OSError, subprocess.SubprocessError) as error:
        return {"reason": str(error)[:300]}


def main() -> None:
    """Measure and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--candidates", type=int, default=48, help="for each number of spares")
    parser.add_argument("--spares", type=int, nargs="+", default=[0, 3, 6], help="waiting runners")
    out_option(parser, NAME)
    options = parser.parse_args()
    with connect() as foundry:
        device = next(d for d in foundry.capabilities().devices if d.id == "cuda:0")
    measured: dict[str, Any] = {
        "bare": {str(n): starts_per_second(n, os.environ) for n in _AT_ONCE},
        "mps": under_mps(),
        "verdicts": [],
    }
    for spares in options.spares:
        waiting = {"KERNEL_FOUNDRY_SPARE_PROCESSES_OF_GPU": str(spares)}
        measured["verdicts"].append({"spares": spares, **child(options.candidates, 1, waiting)})
        print(json.dumps(measured), flush=True)
        write_result(Path(options.out), NAME, device, measured)


if __name__ == "__main__":
    main()
